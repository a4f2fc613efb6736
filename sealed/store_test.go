package sealed_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"go.uber.org/goleak"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/checkpoint/storetest"
	"github.com/unbroken-llm/unbroken/filestore"
	"github.com/unbroken-llm/unbroken/redisstore"
	"github.com/unbroken-llm/unbroken/sealed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	keyA = strings.Repeat("a1", 32)
	keyB = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xb2}, 32))
)

func ring(t *testing.T, text string) sealed.Keys {
	t.Helper()
	k, err := sealed.ParseKeys(text)
	must(t, err)
	return k
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

// mortal is a sealed memory whose owners can die.
type mortal struct {
	sealed.Inner
	dead *sync.Map
}

func (m mortal) Die(o checkpoint.Owner) { m.dead.Store(o, true) }

func memory() (*checkpoint.Memory, *sync.Map) {
	var dead sync.Map
	return checkpoint.NewMemory(checkpoint.MemoryConfig{
		Clock: time.Now,
		Alive: func(o checkpoint.Owner) bool { _, gone := dead.Load(o); return !gone },
	}), &dead
}

func TestASealedStorePassesTheBattery(t *testing.T) {
	storetest.Run(t, func(t *testing.T) checkpoint.Store {
		m, dead := memory()
		return mortal{sealed.New(m, ring(t, keyA)), dead}
	})
}

const me checkpoint.Owner = "me"

var turnKey = checkpoint.Turn(checkpoint.Scope{9}, "run", checkpoint.Fingerprint{9})

// said is what must not be found in clear, each at least once in a turn.
var said = []string{"THE-ANSWER", "THE-MODEL", "THE-THREAD", "THE-RUN", "THE-SECRET"}

func fill(t *testing.T, s sealed.Inner) checkpoint.Fence {
	t.Helper()
	f, _, err := s.Claim(t.Context(), turnKey, me, checkpoint.Record{Run: "THE-RUN", Model: "THE-MODEL", Thread: "THE-THREAD"})
	must(t, err)
	must(t, s.Append(t.Context(), f, 0, []byte("it is THE-ANSWER, ")))
	must(t, s.Append(t.Context(), f, 18, []byte("THE-ANSWER")))
	_, err = s.Secret(t.Context(), "scope", []byte("THE-SECRET"))
	must(t, err)
	return f
}

func TestNothingIsInClear(t *testing.T) {
	dir := t.TempDir()
	files, err := filestore.Open(filestore.Config{Dir: dir})
	must(t, err)
	s := sealed.New(files, ring(t, keyA))
	fill(t, s)
	files.Close()
	n := 0
	must(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		for _, word := range said {
			if bytes.Contains(b, []byte(word)) {
				t.Errorf("%s is in clear in %s", word, path)
			}
		}
		n++
		return err
	}))
	if n < 3 {
		t.Fatalf("only %d files: this proves nothing", n)
	}
	// And it is all there for the next process.
	files, err = filestore.Open(filestore.Config{Dir: dir})
	must(t, err)
	defer files.Close()
	r, err := sealed.New(files, ring(t, keyB+"\n"+keyA)).Get(t.Context(), turnKey)
	must(t, err)
	if string(r.Log) != "it is THE-ANSWER, THE-ANSWER" || r.Run != "THE-RUN" || r.Model != "THE-MODEL" || r.Thread != "THE-THREAD" {
		t.Errorf("%+v", r)
	}
}

func TestKeysRotate(t *testing.T) {
	m, _ := memory()
	old := sealed.New(m, ring(t, keyA))
	f := fill(t, old)
	must(t, old.Release(t.Context(), f))
	rotated := sealed.New(m, ring(t, keyB+" "+keyA))
	g, r, err := rotated.Claim(t.Context(), turnKey, me, checkpoint.Record{})
	must(t, err)
	must(t, rotated.Append(t.Context(), g, int64(len(r.Log)), []byte(" again")))
	r, err = rotated.Get(t.Context(), turnKey)
	must(t, err)
	if string(r.Log) != "it is THE-ANSWER, THE-ANSWER again" {
		t.Errorf("log %q", r.Log)
	}
	if b, err := rotated.Secret(t.Context(), "scope", nil); err != nil || string(b) != "THE-SECRET" {
		t.Errorf("%q, %v", b, err)
	}
	must(t, rotated.Release(t.Context(), g))
	// Without the old key it is an error that says so, never text and never
	// "absent"; and the turn stays free for who has the key.
	late := sealed.New(m, ring(t, keyB))
	_, err = late.Get(t.Context(), turnKey)
	want(t, err, checkpoint.ErrCorrupt)
	if !strings.Contains(err.Error(), "not known here") {
		t.Errorf("it does not help: %v", err)
	}
	_, _, err = late.Claim(t.Context(), turnKey, me, checkpoint.Record{})
	want(t, err, checkpoint.ErrCorrupt)
	_, _, err = late.Follow(t.Context(), turnKey, 0)
	want(t, err, checkpoint.ErrCorrupt)
	// What processes agree on survives the last of its old keys.
	if b, err := late.Secret(t.Context(), "scope", []byte("another")); err != nil || string(b) != "THE-SECRET" {
		t.Errorf("%q, %v", b, err)
	}
	if r, err := m.Get(t.Context(), turnKey); err != nil || r.Owner != "" {
		t.Errorf("%+v, %v", r, err)
	}
}

// A rotation may begin with the new key in the second place, so that every process can
// read what the first to seal with it writes; what they agree on stays the same.
func TestKeysRotateInTwoSteps(t *testing.T) {
	m, _ := memory()
	for _, keys := range []string{keyA, keyA + " " + keyB, keyB + " " + keyA, keyA + " " + keyB, keyB} {
		if b, err := sealed.New(m, ring(t, keys)).Secret(t.Context(), "scope", []byte("of "+keys)); err != nil || string(b) != "of "+keyA {
			t.Errorf("with %s: %q, %v", keys, b, err)
		}
	}
}

func TestWhatIsNotSealedIsRefused(t *testing.T) {
	m, _ := memory()
	f, _, err := m.Claim(t.Context(), turnKey, me, checkpoint.Record{Run: "run"})
	must(t, err)
	must(t, m.Release(t.Context(), f))
	_, err = sealed.New(m, ring(t, keyA)).Get(t.Context(), turnKey)
	want(t, err, checkpoint.ErrCorrupt)
}

// Somebody who can write to the store moves a record to another turn, of another
// caller say.
func TestARecordCannotStandInForAnother(t *testing.T) {
	m, _ := memory()
	s := sealed.New(m, ring(t, keyA))
	fill(t, s)
	stolen, err := m.Get(t.Context(), turnKey)
	must(t, err)
	other := checkpoint.Turn(checkpoint.Scope{1}, "other", checkpoint.Fingerprint{1})
	_, _, err = m.Claim(t.Context(), other, me, *stolen)
	must(t, err)
	_, err = s.Get(t.Context(), other)
	want(t, err, checkpoint.ErrCorrupt)
	// And a bit of it cannot be changed.
	third := checkpoint.Turn(checkpoint.Scope{1}, "third", checkpoint.Fingerprint{1})
	fill := *stolen
	b := []byte(fill.Thread)
	for i := range b {
		fill.Thread = string(b[:i]) + string([]byte{b[i] ^ 1}) + string(b[i+1:])
		f, _, err := m.Claim(t.Context(), third, me, fill)
		must(t, err)
		_, err = s.Get(t.Context(), third)
		want(t, err, checkpoint.ErrCorrupt)
		must(t, m.Delete(t.Context(), f))
	}
}

// Two turns that say the same look different, and so does one that says it twice.
func TestEqualTextLooksDifferent(t *testing.T) {
	m, _ := memory()
	s := sealed.New(m, ring(t, keyA))
	seen := map[string]bool{}
	for _, run := range []checkpoint.RunID{"a", "b"} {
		k := checkpoint.Turn(checkpoint.Scope{}, run, checkpoint.Fingerprint{})
		f, _, err := s.Claim(t.Context(), k, me, checkpoint.Record{})
		must(t, err)
		must(t, s.Append(t.Context(), f, 0, []byte(strings.Repeat("sixteen bytes ..", 4))))
		r, err := m.Get(t.Context(), k)
		must(t, err)
		for p := range slices.Chunk(r.Log, 16) {
			seen[string(p)] = true
		}
	}
	if len(seen) != 8 {
		t.Errorf("%d of 8 blocks differ", len(seen))
	}
}

// The writer of a sealed Redis, through a loss of everything there.
func TestASealedWriter(t *testing.T) {
	srv := miniredis.RunT(t)
	o, err := redisstore.ParseURL("redis://" + srv.Addr())
	must(t, err)
	rs, err := redisstore.Open(redisstore.Config{Server: o, Timeout: 5 * time.Second})
	must(t, err)
	defer rs.Close(context.Background())
	s := sealed.New(rs, ring(t, keyA))
	b, ok := s.(checkpoint.Behind)
	if !ok {
		t.Fatal("a sealed Behind is none")
	}
	head := checkpoint.Record{Run: "THE-RUN", Model: "THE-MODEL"}
	f, _, err := s.Claim(t.Context(), turnKey, me, head)
	must(t, err)
	w := b.Hold(f, me, head, func(err error) { t.Errorf("lost: %v", err) })
	w.Append(0, []byte("it is THE-ANSWER"))
	must(t, w.Sync(t.Context()))
	srv.FlushAll()
	w.Append(16, []byte(", again"))
	must(t, w.Sync(t.Context()))
	if dump := srv.Dump(); strings.Contains(dump, "THE-") {
		t.Errorf("in clear:\n%s", dump)
	}
	r, err := s.Get(t.Context(), turnKey)
	must(t, err)
	if string(r.Log) != "it is THE-ANSWER, again" || r.Run != "THE-RUN" {
		t.Errorf("%+v", r)
	}
	w.Settle(checkpoint.State{Phase: checkpoint.Broken})
}

func TestKeysAreReadOrRefused(t *testing.T) {
	for _, text := range []string{keyA, keyB, keyA + "\n" + keyB + "\n", "  " + keyB} {
		if _, err := sealed.ParseKeys(text); err != nil {
			t.Errorf("%v", err)
		}
	}
	short := hex.EncodeToString([]byte("s3cret"))
	for _, text := range []string{"", " \n", "s3cret", short, keyA + " " + short, keyA[:62] + "zz"} {
		_, err := sealed.ParseKeys(text)
		if err == nil {
			t.Errorf("%q was accepted", text)
			continue
		}
		if text != "" && strings.TrimSpace(text) != "" && strings.Contains(err.Error(), strings.Fields(text)[0]) {
			t.Errorf("the error shows a key: %v", err)
		}
	}
}
