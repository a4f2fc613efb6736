package dialect

import "github.com/unbroken-llm/unbroken/turn"

// Lineage is a [Dialect] whose requests can name an earlier turn that the provider
// keeps, instead of carrying it. A spliced turn is one that it does not keep under
// the id that the client has (DESIGN §3).
type Lineage interface {
	// Named returns the id of the turn that a request builds on; "" if on none.
	Named(body []byte) string
	// Keep returns the id under which later requests may name said, the answer to
	// body, and what Expand needs to know of the two, owned. The id is empty if
	// nobody can name it, or if what body asked cannot be told again.
	Keep(body []byte, said *turn.Snapshot) (id string, kept []byte)
	// Expand puts a kept turn, the one that body names, in the place of its name.
	// The new body names the turn that this one built on, if any. nil: it cannot.
	Expand(body, kept []byte) []byte
}
