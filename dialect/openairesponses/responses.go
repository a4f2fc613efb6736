package openairesponses

import "github.com/unbroken-llm/unbroken/dialect"

// Dialect is the Responses protocol. It holds nothing; the zero value is ready and may be shared.
type Dialect struct{}

var _ dialect.Dialect = Dialect{}

// Name returns "responses".
func (Dialect) Name() string { return "responses" }

// Traits are the protocol's facts (WIRE 1.2, 1.7). There is no marker behind response.completed; the [DONE] that some
// hosts add is tolerated.
func (Dialect) Traits() dialect.Traits {
	return dialect.Traits{
		SignedReasoning: true, // encrypted_content
		BoundReasoning:  true, // it belongs to its item's id
		EventsMode:      true,
	}
}
