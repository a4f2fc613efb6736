package relay

import "github.com/unbroken-llm/unbroken/turn"

// Memo is what later requests of the conversation need to know of a turn that did
// not end as its provider had it (DESIGN §6). The provider, if it keeps turns, does
// not know this one by the id that the client has.
type Memo struct {
	// Said is the message as the client has it, finished.
	Said *turn.Snapshot
	// Calls are the ids of the calls that R2 ended the turn with (their names,
	// where the wire has no ids), Interrupted the names of those it took out, in
	// order, each once.
	Calls, Interrupted []string
}

// memo is what is to be remembered of the turn, nil if nothing.
func (s *Stream) memo() *Memo {
	if !s.spliced || !s.said.Finished() {
		return nil
	}
	m := &Memo{Said: &s.said}
	if len(s.dropped) == 0 {
		return m
	}
	m.Interrupted = s.dropped
	for i := range s.said.Blocks {
		b := &s.said.Blocks[i]
		switch {
		case !b.IsCall() || !b.Live():
		case b.ID != "":
			m.Calls = append(m.Calls, b.ID)
		default:
			m.Calls = append(m.Calls, b.Name)
		}
	}
	return m
}

// interruptedCalls are the names of the calls that were cut. One whose name had not
// come cannot be told of.
func (s *Stream) interruptedCalls() (names []string) {
	seen := map[string]bool{}
	for i := range s.said.Blocks {
		if b := &s.said.Blocks[i]; b.IsCall() && b.Live() && !b.Complete() && b.Name != "" && !seen[b.Name] {
			seen[b.Name] = true
			names = append(names, b.Name)
		}
	}
	return names
}
