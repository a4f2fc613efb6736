package anthropic

import "github.com/unbroken-llm/unbroken/dialect"

// Dialect is the Messages protocol. It holds nothing; the zero value is ready and may be shared.
type Dialect struct{}

var _ dialect.Dialect = Dialect{}

// Name returns "messages".
func (Dialect) Name() string { return "messages" }

// Traits are the protocol's facts (WIRE 1.3, 1.7).
func (Dialect) Traits() dialect.Traits {
	return dialect.Traits{
		SignedReasoning: true, // thinking blocks carry signatures
		Marker:          true, // message_stop; the turn is whole without it
		EventsMode:      true,
	}
}
