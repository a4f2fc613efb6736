package interactions

import "github.com/unbroken-llm/unbroken/dialect"

// Dialect is Interactions. It holds no state.
type Dialect struct{}

var _ dialect.Dialect = Dialect{}

// Name implements dialect.Dialect.
func (Dialect) Name() string { return "interactions" }

// Traits implements dialect.Dialect: thought steps are signed, and `event: done`
// stands behind interaction.completed, where a host sends it.
func (Dialect) Traits() dialect.Traits { return dialect.Traits{SignedReasoning: true, Marker: true} }

// NewDecoder implements dialect.Dialect.
func (Dialect) NewDecoder(r *dialect.Request) dialect.Decoder {
	return &Decoder{track: track{kept: r != nil && r.Kept}}
}
