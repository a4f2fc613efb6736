package faultinject

import (
	"context"
	"net/http"
	"sync"
	"time"
)

// An Exchange is one request and what became of it. Slices and maps in it are
// shared and must not be changed.
type Exchange struct {
	ID              int // from 1, in order of arrival
	Received, Ended time.Time
	Spoke, Last     time.Time // when its first content, and its last event, began to leave; zero: nothing did
	Proto           string
	Method, Path    string // the path with its query
	Header          http.Header
	Body            []byte

	Dialect  Dialect // empty for anything but the two message endpoints
	Model    string
	Scenario string
	Turn     string // key of the logical turn
	TurnNo   int    // of its conversation, from 1
	Attempt  int    // of this turn, from 1; refused requests do not count

	Continuation Continuation
	Seam         string // of a continuation

	Status  int      // sent, 0 if none
	Refusal *Refusal // why the request was turned down
	Fault   string   // the script's directive, empty if none matched
	Applied bool     // the fault's address was reached
	Events  int      // whole events sent
	Bytes   int64    // body bytes sent
	Ending  Ending   // empty while running
}

// An Ending says how an exchange stopped.
type Ending string

// The endings.
const (
	Complete     Ending = "complete"      // everything was said, ended politely
	ClientClosed Ending = "client closed" // the client left first
	Refused      Ending = "refused"       // by strictness
	Replied      Ending = "replied"       // a fault's whole response
	CutPolite    Ending = "cut politely"
	CutFIN       Ending = "cut by fin"
	CutReset     Ending = "cut by rst"
	CutStream    Ending = "cut by rst_stream"
	CutGoAway    Ending = "cut by goaway"
	ServerClosed Ending = "server closed"
)

// history is the log of a server.
type history struct {
	mu      sync.Mutex
	list    []Exchange
	changed chan struct{} // closed and replaced at every change
}

func newHistory() *history { return &history{changed: make(chan struct{})} }

func (h *history) begin(x Exchange) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	x.ID = len(h.list) + 1
	h.list = append(h.list, x)
	h.signal()
	return x.ID
}

// update changes one exchange and returns it.
func (h *history) update(id int, change func(*Exchange)) Exchange {
	h.mu.Lock()
	defer h.mu.Unlock()
	change(&h.list[id-1])
	h.signal()
	return h.list[id-1]
}

func (h *history) signal() {
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *history) snapshot() ([]Exchange, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Exchange(nil), h.list...), h.changed
}

// wait blocks until done holds for the log, and returns that log.
func (h *history) wait(ctx context.Context, done func([]Exchange) bool) ([]Exchange, error) {
	for {
		list, changed := h.snapshot()
		if done(list) {
			return list, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return list, context.Cause(ctx)
		}
	}
}
