package checkpoint_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/checkpoint/storetest"
	"github.com/unbroken-llm/unbroken/turn"
)

// clock is a clock that only the test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// mortal is a memory store whose owners can die.
type mortal struct {
	*checkpoint.Memory
	dead *sync.Map
}

func (m mortal) Die(o checkpoint.Owner) { m.dead.Store(o, true) }

func TestMemoryPassesTheBattery(t *testing.T) {
	storetest.Run(t, func(*testing.T) checkpoint.Store {
		var dead sync.Map
		return mortal{dead: &dead, Memory: checkpoint.NewMemory(checkpoint.MemoryConfig{
			Clock: newClock().Now,
			Alive: func(o checkpoint.Owner) bool { _, gone := dead.Load(o); return !gone },
		})}
	})
}

func key(run string) checkpoint.TurnKey {
	return checkpoint.Turn(checkpoint.Scope{}, checkpoint.RunID(run), checkpoint.Fingerprint{})
}

func claim(t *testing.T, m *checkpoint.Memory, run string) checkpoint.Fence {
	t.Helper()
	f, _, err := m.Claim(t.Context(), key(run), "me", checkpoint.Record{Run: checkpoint.RunID(run)})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestMemoryForgetsInTime(t *testing.T) {
	c := newClock()
	m := checkpoint.NewMemory(checkpoint.MemoryConfig{Clock: c.Now})
	held, done := claim(t, m, "held"), claim(t, m, "done")
	ok(t, m.Mark(t.Context(), done, checkpoint.State{Phase: checkpoint.Finished}))
	there := func(run string, want bool) {
		t.Helper()
		if _, err := m.Get(t.Context(), key(run)); (err == nil) != want || err != nil && !errors.Is(err, checkpoint.ErrNotFound) {
			t.Errorf("%s at %v: %v, want it there: %v", run, c.Now(), err, want)
		}
	}
	c.pass(time.Minute - time.Microsecond)
	there("done", true)
	// A replay, whose client left, makes it neither live longer nor another thing.
	again, _, err := m.Claim(t.Context(), done.Key, "me", checkpoint.Record{})
	ok(t, err)
	ok(t, m.Mark(t.Context(), again, checkpoint.State{Phase: checkpoint.Abandoned}))
	ok(t, m.Release(t.Context(), again))
	if r, err := m.Get(t.Context(), done.Key); err != nil || r.State.Phase != checkpoint.Finished {
		t.Errorf("after a replay: %+v, %v", r, err)
	}
	c.pass(time.Microsecond)
	there("done", false)
	there("held", true)
	ok(t, m.Append(t.Context(), held, 0, []byte("x"))) // renews
	c.pass(time.Hour - time.Microsecond)
	there("held", true)
	c.pass(time.Microsecond)
	there("held", false)
	if err := m.Append(t.Context(), held, 1, []byte("y")); !errors.Is(err, checkpoint.ErrNotFound) {
		t.Errorf("write to an expired turn: %v", err)
	}
}

func TestMemoryBoundsATurn(t *testing.T) {
	m := checkpoint.NewMemory(checkpoint.MemoryConfig{Clock: newClock().Now, MaxTurn: 10})
	f := claim(t, m, "run")
	ok(t, m.Append(t.Context(), f, 0, []byte("0123456789")))
	for _, p := range []string{"x", "9x"} {
		if err := m.Append(t.Context(), f, int64(11-len(p)), []byte(p)); !errors.Is(err, checkpoint.ErrTooLarge) {
			t.Errorf("%q beyond the bound: %v", p, err)
		}
	}
	ok(t, m.Append(t.Context(), f, 0, []byte("0123456789")))
	r, err := m.Get(t.Context(), key("run"))
	ok(t, err)
	if string(r.Log) != "0123456789" {
		t.Errorf("log %q", r.Log)
	}
}

func TestMemoryMakesRoomFromWhatNobodyHolds(t *testing.T) {
	c := newClock()
	m := checkpoint.NewMemory(checkpoint.MemoryConfig{Clock: c.Now, MaxTotal: 30})
	fill := func(run string) checkpoint.Fence {
		t.Helper()
		c.pass(time.Millisecond)
		f := claim(t, m, run)
		ok(t, m.Append(t.Context(), f, 0, []byte("0123456789")))
		return f
	}
	held, first, second := fill("held"), fill("first"), fill("second")
	ok(t, m.Release(t.Context(), second))
	c.pass(time.Millisecond)
	ok(t, m.Release(t.Context(), first)) // written after second
	fill("third")
	var left []string
	for _, run := range []string{"held", "first", "second", "third"} {
		if _, err := m.Get(t.Context(), key(run)); err == nil {
			left = append(left, run)
		}
	}
	if got := strings.Join(left, " "); got != "held first third" {
		t.Errorf("left: %s; the longest unwritten one that nobody holds makes room", got)
	}
	fill("fourth") // takes first's place
	if err := m.Append(t.Context(), held, 10, []byte("x")); !errors.Is(err, checkpoint.ErrTooLarge) {
		t.Errorf("all held and full: %v", err)
	}
	ok(t, m.Delete(t.Context(), held))
	fill("fifth")
}

// What expired makes room without being asked for by name.
func TestMemorySweepsWhatExpired(t *testing.T) {
	c := newClock()
	m := checkpoint.NewMemory(checkpoint.MemoryConfig{Clock: c.Now, MaxTotal: 10})
	ok(t, m.Append(t.Context(), claim(t, m, "old"), 0, []byte("0123456789")))
	c.pass(2 * time.Hour)
	ok(t, m.Append(t.Context(), claim(t, m, "new"), 0, []byte("0123456789")))
}

func TestMemoryFencesSurviveAClockThatStepsBack(t *testing.T) {
	c := newClock()
	m := checkpoint.NewMemory(checkpoint.MemoryConfig{Clock: c.Now})
	f := claim(t, m, "run")
	if f.N < uint64(c.Now().UnixMicro()) {
		t.Errorf("fence %d is behind the clock", f.N)
	}
	ok(t, m.Delete(t.Context(), f))
	c.pass(-24 * time.Hour)
	if g := claim(t, m, "run"); g.N <= f.N {
		t.Errorf("fence %d after %d", g.N, f.N)
	}
}

// A turn goes through the store and comes out: what relay appends, what the next
// process replays, and that it goes on in the same log.
func TestATurnIsTakenOver(t *testing.T) {
	var dead sync.Map
	m := checkpoint.NewMemory(checkpoint.MemoryConfig{
		Clock: newClock().Now,
		Alive: func(o checkpoint.Owner) bool { _, gone := dead.Load(o); return !gone },
	})
	said, mark := &turn.Snapshot{}, turn.Mark{}
	f := claim(t, m, "run")
	flush := func(f checkpoint.Fence, s *turn.Snapshot, k *turn.Mark) {
		t.Helper()
		at := k.Size()
		ok(t, m.Append(t.Context(), f, at, s.AppendSince(nil, k)))
	}
	for _, d := range []turn.Delta{
		{Kind: turn.Open, Of: turn.Prose}, {Kind: turn.Text, Text: []byte("The quick ")}, {Kind: turn.Text, Text: []byte("brown fox")},
	} {
		ok(t, said.Fold(d))
		flush(f, said, &mark)
	}
	dead.Store(checkpoint.Owner("me"), true)
	g, r, err := m.Claim(context.Background(), key("run"), "other", checkpoint.Record{})
	ok(t, err)
	var next turn.Mark
	taken, err := next.Replay(r.Log)
	ok(t, err)
	if got := string(taken.Prose()); got != "The quick brown fox" {
		t.Fatalf("taken over: %q", got)
	}
	ok(t, taken.Fold(turn.Delta{Kind: turn.Text, Text: []byte(" jumps")}))
	flush(g, taken, &next)
	r, err = m.Get(t.Context(), key("run"))
	ok(t, err)
	whole, err := turn.Replay(r.Log)
	ok(t, err)
	if got := string(whole.Prose()); got != "The quick brown fox jumps" {
		t.Errorf("whole: %q", got)
	}
}
