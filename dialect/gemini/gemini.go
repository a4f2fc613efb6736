package gemini

import "github.com/unbroken-llm/unbroken/dialect"

// Dialect is streamGenerateContent. It holds no state.
type Dialect struct{}

var _ dialect.Dialect = Dialect{}

// Name implements dialect.Dialect.
func (Dialect) Name() string { return "gemini" }

// Traits implements dialect.Dialect. Thoughts are summaries: they can go on after
// a restart, and what is signed is signed part by part.
func (Dialect) Traits() dialect.Traits { return dialect.Traits{IndexCallsOnly: true} }

// NewDecoder implements dialect.Dialect.
func (Dialect) NewDecoder(r *dialect.Request) dialect.Decoder { return &Decoder{choices: max(1, r.N)} }

// Repair returns body: no recovery of ours leaves anything in a caller's history
// that the provider would reject.
func (Dialect) Repair(body []byte) []byte { return body }
