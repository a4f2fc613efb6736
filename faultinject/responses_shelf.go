package faultinject

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"time"
)

// shelf is where the provider keeps responses: those of the background from
// their beginning, others once they were said in full and unless store is
// false. A client that leaves an ordinary response ends it, and nobody finds
// it again (WIRE 2.1).
type shelf struct {
	mu   sync.Mutex
	byID map[string]*keptResponse
}

func newShelf() *shelf { return &shelf{byID: map[string]*keptResponse{}} }

// keptResponse is one response. All but cancelled is fixed before it is put
// on the shelf.
type keptResponse struct {
	options    Options
	answer     Answer
	turns      []Turn // the conversation, the answer included
	items      []inputItem
	events     []Event // of a stream, the numbered ones
	streamed   bool
	background bool
	turn       string // its key
	turnNo     int
	started    time.Time
	pace       time.Duration // between the events of the background

	stop chan struct{} // closed by the cancellation

	mu        sync.Mutex
	cancelled int // events made by then, plus one; 0 if it was not
}

// get returns the response with an id.
func (k *shelf) get(id string) (*keptResponse, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.byID[id]
	return r, ok
}

func (k *shelf) put(r *keptResponse) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.byID[r.options.ID] = r
}

// drop takes a response off the shelf; it reports false if it was not there.
func (k *shelf) drop(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.byID[id]
	delete(k.byID, id)
	return ok
}

func (k *shelf) clear() {
	k.mu.Lock()
	defer k.mu.Unlock()
	clear(k.byID)
}

// item returns an output item by its id, and the one that came after it.
func (k *shelf) item(id string) (it inputItem, next string, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.byID {
		for i, it := range r.items {
			if it.ID != id {
				continue
			}
			if i+1 < len(r.items) {
				next = r.items[i+1].ID
			}
			return it, next, true
		}
	}
	return inputItem{}, "", false
}

// before returns the output item that came before the one with an id.
func (k *shelf) before(id string) (inputItem, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range k.byID {
		for i := 1; i < len(r.items); i++ {
			if r.items[i].ID == id {
				return r.items[i-1], true
			}
		}
	}
	return inputItem{}, false
}

// resolve puts kept items in the place of references to them.
func (k *shelf) resolve(items []inputItem) []inputItem {
	out := make([]inputItem, 0, len(items))
	for _, it := range items {
		if it.Type == "item_reference" || it.Type == "" && it.ID != "" {
			if kept, _, ok := k.item(it.ID); ok {
				it = kept
			}
		}
		out = append(out, it)
	}
	return out
}

// shelve makes the record of a response that is about to be sent, and puts it
// on the shelf if it lives in the background. It returns nil if the provider
// keeps nothing of it.
func (s *Server) shelve(p Prompt, t task, a Answer, o Options, pace time.Duration) *keptResponse {
	if p.Dialect == Interactions {
		return s.keepInteraction(p, t, a, o, pace)
	}
	if !p.Stores {
		return nil
	}
	o = o.withDefaults(responsesPrefix)
	r := &keptResponse{options: o, answer: a, streamed: p.Stream, background: p.Background, turn: t.key, turnNo: t.turnNo,
		started: time.Now(), pace: pace, stop: make(chan struct{})}
	for _, e := range responsesEvents(a, o) {
		if _, ok := sequenceOf(e.Raw); ok {
			r.events = append(r.events, e)
		}
	}
	said := Prompt{Turns: append([]Turn(nil), p.Turns...)}
	for _, it := range responsesItems(a, o) {
		var in inputItem
		if err := json.Unmarshal([]byte(it.whole(o)), &in); err != nil {
			panic("BUG: an output item is no JSON: " + err.Error())
		}
		r.items = append(r.items, in)
		said.addItem(in)
	}
	r.turns = said.Turns
	if r.background {
		s.shelf.put(r)
	}
	return r
}

// made is how many events the model has produced.
func (r *keptResponse) made(now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cancelled > 0 {
		return r.cancelled - 1
	}
	if !r.background || r.pace == 0 {
		return len(r.events)
	}
	return min(len(r.events), 1+int(now.Sub(r.started)/r.pace))
}

// cancel stops a response that is not over.
func (r *keptResponse) cancel(now time.Time) {
	n := r.made(now)
	r.mu.Lock()
	defer r.mu.Unlock()
	if n < len(r.events) && r.cancelled == 0 {
		r.cancelled = n + 1
		close(r.stop)
	}
}

func (r *keptResponse) isCancelled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cancelled > 0
}

// object is the response as it stands.
func (r *keptResponse) object(now time.Time) []byte {
	switch n := r.made(now); {
	case r.isCancelled():
		return []byte(responseObject(r.options, "cancelled", nil, ""))
	case n == len(r.events):
		return responsesFinal(r.answer, r.options)
	case n < 3: // created, queued
		return []byte(responseObject(r.options, "queued", nil, ""))
	default:
		return []byte(responseObject(r.options, "in_progress", nil, ""))
	}
}

// sequenceOf reads the sequence_number of an event as it goes on the wire.
func sequenceOf(raw []byte) (int, bool) {
	var e struct {
		Seq *int `json:"sequence_number"`
	}
	if json.Unmarshal(payloadOf(raw), &e) != nil || e.Seq == nil {
		return 0, false
	}
	return *e.Seq, true
}

// payloadOf joins the data lines of an event.
func payloadOf(raw []byte) []byte {
	var data []byte
	for line := range bytes.Lines(raw) {
		if rest, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:")); ok {
			data = append(append(data, bytes.TrimPrefix(rest, []byte(" "))...), '\n')
		}
	}
	return bytes.TrimSpace(data)
}

// storedPath reads the path of a request for a stored response: its id, and
// what is asked of it beyond itself.
func storedPath(path string) (id, act string, ok bool) {
	_, rest, ok := strings.Cut(path, "/responses/")
	id, act, _ = strings.Cut(rest, "/")
	return id, act, ok && id != ""
}
