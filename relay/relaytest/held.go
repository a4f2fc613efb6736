package relaytest

import (
	"net/url"

	"github.com/unbroken-llm/unbroken/interrupt"
)

// Held is a generation that its provider holds, and the ways in which the provider
// answers for it.
type Held struct {
	// ID is the provider's name for it, Units its events from the start.
	ID    string
	Units [][]byte
	// Param is the query parameter with the name of the last event that the caller
	// has, Name an event's name, "" if it has none.
	Param string
	Name  func(unit []byte) string
	// Replays: the provider says everything again, whatever it is asked for.
	Replays bool
	// Until is the last attempt for which it is held, Status the answer to later
	// ones; 0: for ever.
	Until, Status int
	// Cuts are how many bytes of the whole generation exist for each attempt, in
	// order, and End is what happens then. Attempts beyond them get it whole.
	Cuts []int
	End  interrupt.Ended
	Hang bool
	// Extra is what stands behind a cut.
	Extra []byte
}

// Answer answers the attempt that began the generation, and those that attach to it.
// ok is false for any other.
func (h *Held) Answer(q Request) (r Reply, ok bool) {
	units, at := h.Units, 0
	switch {
	case q.Method == "" && (q.Derived || q.N > 1):
		return Reply{}, false
	case q.Method == "":
	case q.Method != "GET" || q.Below != "/"+h.ID:
		return Reply{Status: 405}, true
	case h.Until > 0 && q.N > h.Until:
		return Reply{Status: h.Status, Chunks: [][]byte{[]byte(`{"error":{"message":"not found","type":"invalid_request_error"}}`)}}, true
	default:
		query, err := url.ParseQuery(q.Query)
		if err != nil || query.Get("stream") != "true" {
			return Reply{Status: 400}, true
		}
		if last := query.Get(h.Param); last != "" && !h.Replays {
			if units, at = h.behind(last); units == nil {
				return Reply{Status: 400}, true
			}
		}
	}
	for _, u := range units {
		r.Chunks = append(r.Chunks, u[:len(u)/2], u[len(u)/2:])
	}
	if q.N <= len(h.Cuts) {
		r.Chunks = clipped(r.Chunks, h.Cuts[q.N-1]-at)
		r.End, r.Hang = h.End, h.Hang
		if h.Extra != nil {
			r.Chunks = append(r.Chunks, h.Extra)
		}
	}
	return r, true
}

// behind returns the events behind the one that is named so, and where they begin in
// the stream; nil if there is no such event.
func (h *Held) behind(last string) (units [][]byte, at int) {
	for i, u := range h.Units {
		at += len(u)
		if h.Name(u) == last {
			return h.Units[i+1:], at
		}
	}
	return nil, 0
}

// clipped is the first n bytes of chunks.
func clipped(chunks [][]byte, n int) (out [][]byte) {
	for _, c := range chunks {
		if n <= 0 {
			break
		}
		out = append(out, c[:min(n, len(c))])
		n -= len(c)
	}
	return out
}
