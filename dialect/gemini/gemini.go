package gemini

import "github.com/unbroken-llm/unbroken/dialect"

// Dialect is streamGenerateContent?alt=sse. It holds no state.
type Dialect struct{ grammar }

var (
	_ dialect.Dialect = Dialect{}
	_ dialect.Dripper = Dialect{}
)

// grammar is what the framings share.
type grammar struct{}

// Name implements dialect.Dialect.
func (grammar) Name() string { return "gemini" }

// Traits implements dialect.Dialect. Thoughts are summaries: they can go on after
// a restart, and what is signed is signed part by part.
func (grammar) Traits() dialect.Traits { return dialect.Traits{IndexCallsOnly: true} }

// NewDecoder implements dialect.Dialect.
func (Dialect) NewDecoder(r *dialect.Request) dialect.Decoder { return newDecoder(r) }

func newDecoder(r *dialect.Request) *Decoder { return &Decoder{choices: max(1, r.N)} }

// Repair returns body: no recovery of ours leaves anything in a caller's history
// that the provider would reject.
func (grammar) Repair(body []byte) []byte { return body }
