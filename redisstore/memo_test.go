package redisstore

import (
	"errors"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

func memo(name, value string) checkpoint.Memo {
	return checkpoint.Memo{Key: checkpoint.MemoOf(checkpoint.Scope{9}, "test", name), Value: []byte(value)}
}

func TestAMemoIsForgottenInTime(t *testing.T) {
	m := miniredis.RunT(t)
	s := open(t, "redis://"+m.Addr(), lasting)
	must(t, s.Remember(t.Context(), time.Minute, memo("short", "gone")))
	must(t, s.Remember(t.Context(), time.Hour, memo("long", "stays")))
	m.FastForward(time.Minute)
	got, err := s.Recall(t.Context(), memo("short", "").Key, memo("long", "").Key)
	if err != nil || got[0] != nil || string(got[1]) != "stays" {
		t.Fatalf("recalled %q, %v", got, err)
	}
}

// While Redis is away memos are refused at once, like everything else.
func TestMemosOfARedisThatIsAway(t *testing.T) {
	m := miniredis.RunT(t)
	s := open(t, "redis://"+m.Addr(), func(c *Config) { c.Failures, c.Timeout = 1, 100*time.Millisecond })
	must(t, s.Remember(t.Context(), time.Hour, memo("one", "x")))
	m.Close()
	for range 3 {
		if _, err := s.Recall(t.Context(), memo("one", "").Key); !errors.Is(err, checkpoint.ErrUnavailable) {
			t.Fatalf("recalled with %v", err)
		}
	}
	if err := s.Remember(t.Context(), time.Hour, memo("two", "x")); !errors.Is(err, checkpoint.ErrUnavailable) {
		t.Fatalf("remembered with %v", err)
	}
	if !s.away() {
		t.Fatal("Redis does not count as away")
	}
}

func TestAMemoHasABound(t *testing.T) {
	s := open(t, "redis://"+miniredis.RunT(t).Addr(), func(c *Config) { c.MaxTurn = 3 })
	if err := s.Remember(t.Context(), time.Hour, memo("one", "1234")); !errors.Is(err, checkpoint.ErrTooLarge) {
		t.Fatalf("remembered with %v", err)
	}
}
