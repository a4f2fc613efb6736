package openaichat

import "github.com/unbroken-llm/unbroken/dialect"

// Dialect is Chat Completions. It holds no state.
type Dialect struct{ Wire }

var _ dialect.Dialect = Dialect{}

// Name implements dialect.Dialect.
func (Dialect) Name() string { return "chat" }

// Traits implements dialect.Dialect.
func (Dialect) Traits() dialect.Traits {
	return dialect.Traits{IndexCallsOnly: true, LateUsage: true, Marker: true, EventsMode: true}
}

// Repair returns body: chat's reasoning carries no signature, so no recovery of
// ours leaves anything in a caller's history that a provider would reject.
func (Dialect) Repair(body []byte) []byte { return body }
