package dialect

import (
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Unfolder is a [Dialect] whose ordinary answer, the JSON that a request without a
// stream gets, can be told as a stream that says the same: what [Upgrader] does,
// backwards. Whoever learns of turns then has one reader for both.
type Unfolder interface {
	Dialect
	// Unfold returns the events of a stream that says what answer, which is JSON,
	// says; none if it is no answer of the dialect that has ended. They alias answer.
	// They are for the dialect's own decoder and nobody's wire: an error that stands
	// in the answer is for that to find.
	Unfold(answer []byte) []sse.Event
}

// Read returns what an ordinary answer to r says. ok is false of what is no whole
// answer of d: an error under a status of success, a turn that has not ended, another
// protocol's JSON.
func Read(d Dialect, r *Request, answer []byte) (said *turn.Snapshot, ok bool) {
	u, can := d.(Unfolder)
	if !can || !jsonwalk.Valid(answer) {
		return nil, false
	}
	dec, said := d.NewDecoder(r), new(turn.Snapshot)
	var ds []turn.Delta
	for _, e := range u.Unfold(answer) {
		var err error
		if ds, err = dec.Decode(ds[:0], e); err != nil {
			return nil, false
		}
		for i := range ds {
			if ds[i].Kind == turn.Fault || said.Fold(ds[i]) != nil {
				return nil, false
			}
		}
	}
	return said, said.Finished()
}

// Told is an event of that name with that data, as a decoder takes it.
func Told(name string, data []byte) sse.Event {
	return sse.Event{Name: []byte(name), Data: data}
}
