package dialect

import "crypto/sha256"

// Historian is a [Dialect] whose requests carry the results of calls that earlier
// turns made (DESIGN §6).
type Historian interface {
	// Answers reports, at the price of a search, whether body may carry results.
	Answers(body []byte) bool
	// History reads the history that body carries. Places are offsets into body.
	History(body []byte) History
}

// Past identifies what was said before a turn. It is the same in every later
// request of a conversation, whatever clients change between two: cache marks,
// white space, escapes, one text as a string or as a list of one part, system
// prompts.
type Past [sha256.Size]byte

// After is the past of a turn that builds on an earlier one which the provider
// keeps, and which the request names instead of carrying it.
func After(id string) Past { return sha256.Sum256([]byte("unbroken after 1\x00" + id)) }

// History is what a request says of the turns before it.
type History struct {
	// Now is the past of the turn that the request asks for.
	Now Past
	// Rounds are the earlier turns of whose calls the request carries results,
	// oldest first.
	Rounds []Round
	// Prior is the past of the model's turn before the one that is asked for,
	// answered or not. HasPrior: there is one.
	Prior    Past
	HasPrior bool
}

// Latest is the last of the rounds, the zero Round if there is none.
func (h History) Latest() (r Round) {
	if n := len(h.Rounds); n > 0 {
		r = h.Rounds[n-1]
	}
	return r
}

// Round is an earlier turn of the model and the results of its calls.
type Round struct {
	Before Past
	// Calls are the ids of the calls that are answered; their names, where the
	// wire has no ids.
	Calls []string
	// Note is where a note to the model about this turn's calls goes; the zero
	// Place if the wire has none.
	Note Place
}

// Place is where words can be put into a body: at byte At, between Open and Close,
// as part of a JSON string.
type Place struct {
	At          int
	Open, Close string
}
