package checkpoint_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

func memoKey(name string) checkpoint.MemoKey {
	return checkpoint.MemoOf(checkpoint.Scope{}, "test", name)
}

func TestAMemoIsForgottenInTime(t *testing.T) {
	c := newClock()
	m := checkpoint.NewMemory(checkpoint.MemoryConfig{Clock: c.Now})
	for name, ttl := range map[string]time.Duration{"short": time.Minute, "long": time.Hour} {
		if err := m.Remember(t.Context(), ttl, checkpoint.Memo{Key: memoKey(name), Value: []byte(name)}); err != nil {
			t.Fatal(err)
		}
	}
	c.pass(time.Minute - time.Microsecond)
	if got, err := m.Recall(t.Context(), memoKey("short")); err != nil || string(got[0]) != "short" {
		t.Fatalf("within its time: %q, %v", got, err)
	}
	c.pass(time.Microsecond)
	if got, err := m.Recall(t.Context(), memoKey("short"), memoKey("long")); err != nil || got[0] != nil || string(got[1]) != "long" {
		t.Fatalf("after it: %q, %v", got, err)
	}
}

func TestTheOldestMemosMakeRoom(t *testing.T) {
	m := checkpoint.NewMemory(checkpoint.MemoryConfig{Clock: newClock().Now, MaxMemos: 3 << 10})
	put := func(name string, size int) error {
		return m.Remember(t.Context(), time.Hour, checkpoint.Memo{Key: memoKey(name), Value: bytes.Repeat([]byte("x"), size)})
	}
	for _, name := range []string{"a", "b", "a", "c"} { // a is newer than b
		if err := put(name, 800); err != nil {
			t.Fatal(err)
		}
	}
	if err := put("d", 800); err != nil {
		t.Fatal(err)
	}
	got, err := m.Recall(t.Context(), memoKey("a"), memoKey("b"), memoKey("c"), memoKey("d"))
	if err != nil || got[0] == nil || got[1] != nil || got[2] == nil || got[3] == nil {
		t.Fatalf("kept a %t, b %t, c %t, d %t; %v", got[0] != nil, got[1] != nil, got[2] != nil, got[3] != nil, err)
	}
	if err := put("e", 4<<10); !errors.Is(err, checkpoint.ErrTooLarge) {
		t.Fatalf("more than all of them: %v", err)
	}
}

func TestMemoKeysAreApart(t *testing.T) {
	keys := map[checkpoint.MemoKey]string{}
	for what, key := range map[string]checkpoint.MemoKey{
		"one":           checkpoint.MemoOf(checkpoint.Scope{}, "k", "ab", "c"),
		"other split":   checkpoint.MemoOf(checkpoint.Scope{}, "k", "a", "bc"),
		"other kind":    checkpoint.MemoOf(checkpoint.Scope{}, "l", "ab", "c"),
		"other caller":  checkpoint.MemoOf(checkpoint.Scope{1}, "k", "ab", "c"),
		"no parts":      checkpoint.MemoOf(checkpoint.Scope{}, "k"),
		"an empty part": checkpoint.MemoOf(checkpoint.Scope{}, "k", ""),
	} {
		if same, ok := keys[key]; ok {
			t.Errorf("%s has the key of %s", what, same)
		}
		keys[key] = what
	}
}
