package statuspage

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/unbroken-llm/unbroken/planner"
	"github.com/unbroken-llm/unbroken/proxy"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/telemetry"
)

const (
	maxFeed = 200 // recoveries that are remembered
	maxLive = 200 // live streams that are told one by one
)

// Board is what the page shows of streams. It implements [proxy.Observer].
type Board struct {
	clock func() time.Time

	mu      sync.Mutex
	live    map[*watched]struct{}
	last    int64 // id of a stream
	rev     int64 // counts the changes of the feed
	feed    []*Recovery
	totals  Totals
	history history
}

// NewBoard returns a board that knows nothing yet; clock nil: time.Now.
func NewBoard(clock func() time.Time) *Board {
	if clock == nil {
		clock = time.Now
	}
	return &Board{clock: clock, live: map[*watched]struct{}{}}
}

// State is what a live stream is doing.
type State string

// The states.
const (
	Opening    State = "opening"    // nothing visible came yet
	Streaming  State = "streaming"  // it flows
	Recovering State = "recovering" // it was interrupted, and nothing new came since
)

// Live is one stream in flight.
type Live struct {
	ID         int64     `json:"id"`
	Run        string    `json:"run"`
	Dialect    string    `json:"dialect"`
	Upstream   string    `json:"upstream"` // that is asked now
	Model      string    `json:"model"`
	State      State     `json:"state"`
	Began      time.Time `json:"began"`
	Since      time.Time `json:"since"` // of the state
	Attempts   int       `json:"attempts"`
	Recoveries int       `json:"recoveries"`
	Cause      string    `json:"cause,omitempty"` // of the last interruption
}

// Result is what became of a recovery.
type Result string

// The results.
const (
	UnderWay Result = "under_way"
	Healed   Result = "healed"   // new content reached the client
	Finished Result = "finished" // the turn was ended as complete, by what was there
	Again    Result = "again"    // it was interrupted before anything new came
	GaveUp   Result = "gave_up"
	Left     Result = "left" // the client did
)

// Recovery is one interruption and what was done about it.
type Recovery struct {
	ID       int64     `json:"id"`
	Rev      int64     `json:"rev"` // of its last change
	Stream   int64     `json:"stream"`
	At       time.Time `json:"at"`
	Run      string    `json:"run"`
	Dialect  string    `json:"dialect"`
	Upstream string    `json:"upstream"` // that failed
	Model    string    `json:"model"`
	Cause    string    `json:"cause"`
	Status   int       `json:"status,omitempty"`
	Plan     string    `json:"plan"`
	Reason   string    `json:"reason"`
	Manner   string    `json:"manner,omitempty"`
	Seam     string    `json:"seam,omitempty"`
	Joined   bool      `json:"joined,omitempty"`
	GapMS    int64     `json:"gap_ms,omitempty"`
	// Saved output tokens, against a full retry, by estimate.
	Saved  int64  `json:"saved_tokens"`
	Result Result `json:"result"`
}

// Totals count from the start of the process.
type Totals struct {
	Healed        int64 `json:"healed"` // streams that ended well though they were interrupted
	Interruptions int64 `json:"interruptions"`
	Saved         int64 `json:"saved_tokens"`
	Repaid        int64 `json:"repaid_tokens"`
}

// watched is one stream on the board.
type watched struct {
	b       *Board
	targets []proxy.Asked
	now     Live
	open    *Recovery // that nothing came of yet
}

// Begin implements [proxy.Observer].
func (b *Board) Begin(s proxy.Subject) proxy.Listener {
	w := &watched{b: b, targets: s.Targets, now: Live{
		Run: s.Run, Dialect: s.Dialect, Upstream: s.Upstream, Model: s.Model, State: Opening, Began: s.Began, Since: s.Began,
	}}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last++
	w.now.ID = b.last
	b.live[w] = struct{}{}
	b.history.at(s.Began, len(b.live))
	return w
}

// Note implements [proxy.Listener].
func (w *watched) Note(n relay.Note) {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	switch n.Kind {
	case relay.NoteAttempt:
		w.now.Attempts++
		if n.Target < len(w.targets) {
			w.now.Upstream, w.now.Model = w.targets[n.Target].Upstream, w.targets[n.Target].Model
		}
	case relay.NoteVisible:
		w.turn(Streaming, n.At)
	case relay.NoteInterrupted:
		w.interrupted(n)
	case relay.NoteSeam:
		if r := w.open; r != nil {
			r.Seam, r.Joined = n.Reason, n.Joined
			w.b.changed(r)
		}
	case relay.NoteHealed:
		w.turn(Streaming, n.At)
		w.b.history.at(n.At, len(w.b.live)).gap(n.Gap)
		if r := w.open; r != nil {
			r.GapMS = n.Gap.Milliseconds()
			w.settle(Healed)
		}
	case relay.NoteDemoted, relay.NoteUnprotected, relay.NoteEnd:
	}
}

func (w *watched) turn(s State, at time.Time) {
	if w.now.State != s {
		w.now.State, w.now.Since = s, at
	}
}

func (w *watched) interrupted(n relay.Note) {
	w.settle(Again)
	b := w.b
	b.totals.Interruptions++
	saved := telemetry.Saved(n)
	b.totals.Saved += saved
	b.history.at(n.At, len(b.live)).Interruptions++
	w.now.Cause = n.Cause.Kind.String()
	r := &Recovery{
		ID: b.totals.Interruptions, Stream: w.now.ID, At: n.At, Run: w.now.Run, Dialect: w.now.Dialect, Upstream: w.now.Upstream, Model: w.now.Model,
		Cause: w.now.Cause, Status: n.Cause.Status, Plan: n.Plan.Kind.String(), Reason: n.Plan.Reason, Saved: saved, Result: UnderWay,
	}
	if len(b.feed) == maxFeed {
		b.feed = slices.Delete(b.feed, 0, 1)
	}
	b.feed = append(b.feed, r)
	b.changed(r)
	w.open = r
	switch k := n.Plan.Kind; {
	case k == planner.Refuse:
		w.settle(GaveUp)
	case !k.Upstream():
		w.settle(Finished)
	default:
		r.Manner = n.Manner.String()
		w.now.Recoveries++
		w.turn(Recovering, n.At)
	}
}

// settle says what became of the recovery under way. mu is held.
func (w *watched) settle(as Result) {
	if r := w.open; r != nil {
		w.open, r.Result = nil, as
		w.b.changed(r)
	}
}

// changed makes readers see r anew. mu is held.
func (b *Board) changed(r *Recovery) {
	b.rev++
	r.Rev = b.rev
}

// End implements [proxy.Listener].
func (w *watched) End(o proxy.Outcome) {
	b := w.b
	b.mu.Lock()
	defer b.mu.Unlock()
	switch o.Whose {
	case proxy.Completed:
		w.settle(Finished)
	case proxy.Client:
		w.settle(Left)
	case proxy.Us, proxy.Provider, proxy.Request:
		w.settle(GaveUp)
	}
	delete(b.live, w)
	b.totals.Repaid += o.Summary.Repaid
	healed := o.Whose == proxy.Completed && w.now.Cause != ""
	if healed {
		b.totals.Healed++
	}
	b.history.at(o.At, len(b.live)).ended(o.Whose, healed)
}

// telling puts those that are being recovered first, then the oldest; [maxLive] of
// them at most.
func telling(all []Live) []Live {
	rank := func(l Live) int {
		if l.State == Recovering {
			return 0
		}
		return 1
	}
	slices.SortFunc(all, func(x, y Live) int {
		return cmp.Or(cmp.Compare(rank(x), rank(y)), x.Began.Compare(y.Began), cmp.Compare(x.ID, y.ID))
	})
	return all[:min(len(all), maxLive)]
}
