package filestore

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

func memo(name string, value []byte) checkpoint.Memo {
	return checkpoint.Memo{Key: checkpoint.MemoOf(checkpoint.Scope{9}, "test", name), Value: value}
}

func recall(t *testing.T, s *Store, name string) string {
	t.Helper()
	got, err := s.Recall(t.Context(), memo(name, nil).Key)
	must(t, err)
	return string(got[0])
}

func TestMemosOutliveTheProcessAndNotTheirTime(t *testing.T) {
	dir, clk := t.TempDir(), newClock()
	s := open(t, Config{Dir: dir, Clock: clk.Now})
	must(t, s.Remember(t.Context(), time.Minute, memo("short", []byte("soon gone"))))
	must(t, s.Remember(t.Context(), time.Hour, memo("long", []byte("stays"))))
	s.Close()
	must(t, os.WriteFile(filepath.Join(dir, "memos", memo("torn", nil).Key.String()), []byte{memoVersion, 1, 2}, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "memos", memo("long", nil).Key.String()+".tmp"), []byte("half"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "memos", "README"), []byte("not ours"), 0o600))

	s = open(t, Config{Dir: dir, Clock: clk.Now})
	if got := recall(t, s, "short") + recall(t, s, "long") + recall(t, s, "torn"); got != "soon gonestays" {
		t.Fatalf("recalled %q", got)
	}
	clk.pass(time.Minute)
	if got := recall(t, s, "short"); got != "" {
		t.Fatalf("recalled %q after its time", got)
	}
	must(t, s.Remember(t.Context(), time.Hour, memo("another", []byte("x")))) // and looks around
	left, err := os.ReadDir(filepath.Join(dir, "memos"))
	must(t, err)
	if len(left) != 3 { // long, another, and what is not ours
		t.Fatalf("%d files are left: %v", len(left), left)
	}
}

func TestTheOldestMemosMakeRoom(t *testing.T) {
	clk := newClock()
	s := open(t, Config{Dir: t.TempDir(), Clock: clk.Now, MaxMemos: 2500})
	for _, name := range []string{"a", "b", "c"} {
		must(t, s.Remember(t.Context(), time.Hour, memo(name, bytes.Repeat([]byte(name), 1000))))
		clk.pass(time.Second)
	}
	if recall(t, s, "a") != "" || recall(t, s, "b") == "" || recall(t, s, "c") == "" {
		t.Fatal("not the oldest made room")
	}
	if err := s.Remember(t.Context(), time.Hour, memo("d", make([]byte, 3000))); !errors.Is(err, checkpoint.ErrTooLarge) {
		t.Fatalf("more than all of them: %v", err)
	}
}

// A memo whose bytes rotted is corrupt, not absent.
func TestARottenMemoIsCorrupt(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	m := memo("one", []byte("value"))
	must(t, s.Remember(t.Context(), time.Hour, m))
	b, err := os.ReadFile(s.memoPath(m.Key))
	must(t, err)
	b[memoHead] ^= 1
	must(t, os.WriteFile(s.memoPath(m.Key), b, 0o600))
	if _, err := s.Recall(t.Context(), m.Key); !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Fatalf("recalled with %v", err)
	}
}
