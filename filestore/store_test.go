package filestore

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/checkpoint/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// clock is a clock that only the test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Now()} }

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

func open(t *testing.T, c Config) *Store {
	t.Helper()
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

type mortal struct{ *Store }

func (m mortal) Die(o checkpoint.Owner) {
	m.ids.mu.Lock()
	defer m.ids.mu.Unlock()
	delete(m.ids.owners, o)
}

func TestFilesPassTheBattery(t *testing.T) {
	storetest.Run(t, func(t *testing.T) checkpoint.Store { return mortal{open(t, Config{Dir: t.TempDir()})} })
}

const me checkpoint.Owner = "me"

func key(run string) checkpoint.TurnKey {
	return checkpoint.Turn(checkpoint.Scope{9}, checkpoint.RunID(run), checkpoint.Fingerprint{9})
}

func claim(t *testing.T, s *Store, run string, o checkpoint.Owner) (checkpoint.Fence, *checkpoint.Record) {
	t.Helper()
	f, r, err := s.Claim(t.Context(), key(run), o, checkpoint.Record{Run: checkpoint.RunID(run), Model: "model"})
	must(t, err)
	return f, r
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

// crash leaves the directory as kill -9 does: nothing is written any more.
func crash(s *Store) {
	close(s.stop)
	s.work.Wait()
	_ = s.lock.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, h := range s.turns {
		h.shut()
	}
}

func TestATurnOutlivesItsProcess(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir})
	f, _ := claim(t, s, "run", me)
	must(t, s.Append(t.Context(), f, 0, []byte("said ")))
	must(t, s.Mark(t.Context(), f, checkpoint.State{Attempt: 2, Causes: []string{"idle_stall"}}))
	must(t, s.Append(t.Context(), f, 5, []byte("before")))
	must(t, s.Offer(t.Context(), checkpoint.AskKey{1}, f))
	first, err := s.Secret(t.Context(), "scope", []byte("first"))
	must(t, err)
	crash(s)

	next := open(t, Config{Dir: dir})
	if st := next.Stats(); st.Turns != 1 || st.Bytes != 11 || st.Cut != 0 {
		t.Errorf("%+v", st)
	}
	again, err := next.Secret(t.Context(), "scope", []byte("second"))
	must(t, err)
	if !bytes.Equal(first, again) {
		t.Errorf("the secret is %q now", again)
	}
	g, r, err := next.Adopt(t.Context(), checkpoint.AskKey{1}, "other", time.Hour)
	must(t, err)
	if string(r.Log) != "said before" || r.Owner != me || r.Model != "model" || r.State.Attempt != 2 || g.N <= f.N {
		t.Fatalf("fence %d after %d, %+v", g.N, f.N, r)
	}
	want(t, next.Append(t.Context(), f, 11, []byte("x")), checkpoint.ErrFenced)
	must(t, next.Append(t.Context(), g, 11, []byte(" and after")))
	crash(next)
	last := open(t, Config{Dir: dir})
	r, err = last.Get(t.Context(), key("run"))
	must(t, err)
	if string(r.Log) != "said before and after" {
		t.Errorf("log %q", r.Log)
	}
	_, _, err = last.Adopt(t.Context(), checkpoint.AskKey{1}, "third", time.Hour)
	want(t, err, checkpoint.ErrNotFound) // once, over all processes
}

// The machine died in the middle of an append: whatever the end of the log looks
// like, what was there before is kept and the log goes on.
func TestATornEndIsCut(t *testing.T) {
	whole := frame([]byte(" world"))
	for n := 1; n < len(whole); n++ {
		tearAndGoOn(t, whole[:n])
	}
	for name, tail := range map[string][]byte{
		"zeros":           make([]byte, 4096),
		"a wrong sum":     append(bytes.Clone(whole[:len(whole)-1]), 'X'),
		"an absurd size":  {0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 'x'},
		"a torn sum only": append([]byte{0, 0, 0, 1}, 1, 2, 3, 4, 'x'),
	} {
		t.Run(name, func(t *testing.T) { tearAndGoOn(t, tail) })
	}
}

func tearAndGoOn(t *testing.T, tail []byte) {
	t.Helper()
	dir := t.TempDir()
	s := open(t, Config{Dir: dir})
	f, _ := claim(t, s, "run", me)
	must(t, s.Append(t.Context(), f, 0, []byte("hello")))
	crash(s)
	log, err := os.OpenFile(s.path(key("run"))+".log", os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = log.Write(tail)
	must(t, err)
	must(t, log.Close())

	next := open(t, Config{Dir: dir})
	g, r := claim(t, next, "run", "other")
	if string(r.Log) != "hello" || next.Stats().Cut != 1 {
		t.Fatalf("torn after %d bytes: log %q, %+v", len(tail), r.Log, next.Stats())
	}
	must(t, next.Append(t.Context(), g, 5, []byte(", and on")))
	crash(next)
	last := open(t, Config{Dir: dir})
	r, err = last.Get(t.Context(), key("run"))
	must(t, err)
	if string(r.Log) != "hello, and on" || last.Stats().Cut != 0 {
		t.Fatalf("torn after %d bytes: log %q", len(tail), r.Log)
	}
	crash(last)
}

func TestOneProcessOwnsTheDirectory(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir})
	_, err := Open(Config{Dir: dir})
	want(t, err, ErrInUse)
	if msg := err.Error(); strings.Contains(msg, "\n") || !strings.Contains(msg, dir) {
		t.Errorf("it does not help: %s", msg)
	}
	s.Close()
	s.Close()
	want(t, s.Append(t.Context(), checkpoint.Fence{}, 0, nil), checkpoint.ErrUnavailable)
	open(t, Config{Dir: dir})
}

func TestFilesThatMakeNoSense(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(b []byte) []byte
		want   error
	}{
		{"empty", func([]byte) []byte { return nil }, checkpoint.ErrCorrupt},
		{"truncated", func(b []byte) []byte { return b[:len(b)/2] }, checkpoint.ErrCorrupt},
		{"one bit", func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, checkpoint.ErrCorrupt},
		{"text", func([]byte) []byte { return []byte("\x01hello, this is a text of somebody else") }, checkpoint.ErrCorrupt},
		{"a newer release", func(b []byte) []byte { b[0]++; return b }, checkpoint.ErrVersion},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, clk := t.TempDir(), newClock()
			s := open(t, Config{Dir: dir, Clock: clk.Now})
			f, _ := claim(t, s, "run", me)
			claim(t, s, "healthy", me)
			crash(s)
			path := s.path(key("run")) + ".rec"
			b, err := os.ReadFile(path)
			must(t, err)
			must(t, os.WriteFile(path, c.damage(b), 0o600))
			next := open(t, Config{Dir: dir, Clock: clk.Now})
			_, err = next.Get(t.Context(), key("run"))
			want(t, err, c.want)
			_, _, err = next.Claim(t.Context(), key("run"), me, checkpoint.Record{})
			want(t, err, c.want)
			want(t, next.Append(t.Context(), f, 0, nil), c.want)
			claim(t, next, "healthy", me)
			clk.pass(2 * time.Hour) // and it does not stay for ever
			claim(t, next, "run", me)
		})
	}
}

func TestForeignFilesStay(t *testing.T) {
	dir := t.TempDir()
	open(t, Config{Dir: dir}).Close()
	path := filepath.Join(dir, "turns", "README")
	must(t, os.WriteFile(path, []byte("x"), 0o600))
	open(t, Config{Dir: dir}).Close()
	if _, err := os.Stat(path); err != nil {
		t.Error(err)
	}
}

func TestTurnsExpireWithTheirFiles(t *testing.T) {
	dir, clk := t.TempDir(), newClock()
	s := open(t, Config{Dir: dir, Clock: clk.Now})
	live, _ := claim(t, s, "live", me)
	done, _ := claim(t, s, "done", me)
	must(t, s.Append(t.Context(), done, 0, []byte("abc")))
	must(t, s.Append(t.Context(), live, 0, []byte("abc")))
	must(t, s.Mark(t.Context(), done, checkpoint.State{Phase: checkpoint.Finished}))
	clk.pass(time.Minute - time.Millisecond)
	// A replay, whose client left, makes it neither live longer nor another thing.
	again, _ := claim(t, s, "done", me)
	must(t, s.Mark(t.Context(), again, checkpoint.State{Phase: checkpoint.Abandoned}))
	must(t, s.Release(t.Context(), again))
	if r, err := s.Get(t.Context(), key("done")); err != nil || r.State.Phase != checkpoint.Finished {
		t.Errorf("after a replay: %+v, %v", r, err)
	}
	clk.pass(time.Millisecond)
	_, err := s.Get(t.Context(), key("done"))
	want(t, err, checkpoint.ErrNotFound)
	_, err = s.Get(t.Context(), key("live"))
	must(t, err)
	clk.pass(time.Hour)
	claim(t, s, "new", me) // sweeps
	if st := s.Stats(); st.Turns != 1 || st.Bytes != 0 {
		t.Errorf("%+v", st)
	}
	left, err := filepath.Glob(filepath.Join(dir, "turns", "*", "*"))
	must(t, err)
	if len(left) != 1 || left[0] != s.path(key("new"))+".rec" {
		t.Errorf("left: %q", left)
	}
}

func TestLogsAreBounded(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir(), MaxTurn: 10, MaxTotal: 15})
	f, _ := claim(t, s, "one", me)
	g, _ := claim(t, s, "two", me)
	must(t, s.Append(t.Context(), f, 0, []byte("0123456789")))
	want(t, s.Append(t.Context(), f, 9, []byte("9x")), checkpoint.ErrTooLarge)
	want(t, s.Append(t.Context(), g, 0, []byte("012345")), checkpoint.ErrTooLarge)
	must(t, s.Append(t.Context(), g, 0, []byte("01234")))
	must(t, s.Delete(t.Context(), f))
	must(t, s.Append(t.Context(), g, 5, []byte("56789")))
}

// What a client sends never becomes a file name.
func TestRunIDsAreNotPaths(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Config{Dir: dir})
	for _, run := range []string{"../../escape", "/etc/passwd", strings.Repeat("x", 10<<10), "a\x00b", "CON"} {
		f, _ := claim(t, s, run, me)
		must(t, s.Append(t.Context(), f, 0, []byte(run)))
	}
	n := 0
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && filepath.Dir(filepath.Dir(path)) == filepath.Join(dir, "turns") {
			n++
		}
		return err
	}))
	if n != 10 {
		t.Errorf("%d files, want a record and a log for each of 5 turns", n)
	}
}

// Fences grow over processes even when the clock steps back in between.
func TestFencesGrowOverProcesses(t *testing.T) {
	dir, clk := t.TempDir(), newClock()
	s := open(t, Config{Dir: dir, Clock: clk.Now})
	f, _ := claim(t, s, "run", me)
	crash(s)
	clk.pass(-time.Minute)
	if g, _ := claim(t, open(t, Config{Dir: dir, Clock: clk.Now}), "run", "other"); g.N <= f.N {
		t.Errorf("fence %d after %d", g.N, f.N)
	}
}
