package dialect

import "github.com/unbroken-llm/unbroken/turn"

// Lineage is a [Dialect] whose requests can name an earlier turn that the provider
// keeps, or an item of one, instead of carrying it. A spliced turn is one that it
// does not keep under the ids that the client has (DESIGN §3).
type Lineage interface {
	// Named returns the id of the turn that a request builds on; "" if on none.
	Named(body []byte) string
	// Known returns the id by which later requests can name said, the answer to
	// body; "" if they cannot, or if what body asked cannot be told again.
	Known(body []byte, said *turn.Snapshot) string
	// Keep returns what is to be known of said, the answer to body, under its Known
	// id: the zero Legacy if there is none.
	Keep(body []byte, said *turn.Snapshot) Legacy
	// Expand puts a kept turn, the one that body names, in the place of its name.
	// The new body names the turn that this one built on, if any. nil: it cannot.
	Expand(body, kept []byte) []byte
	// Refers returns the ids of the items that body names instead of carrying them.
	Refers(body []byte) []string
	// Inline puts kept items in the places of their names. kept returns nil for
	// one that is the provider's to know.
	Inline(body []byte, kept func(id string) []byte) []byte
}

// Legacy is a turn as Expand, and its items as Inline, need them; owned.
type Legacy struct {
	ID    string
	Turn  []byte
	Items []Heirloom
}

// Heirloom is one item of a turn.
type Heirloom struct {
	ID   string
	Item []byte
}
