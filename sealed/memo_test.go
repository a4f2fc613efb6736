package sealed_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/sealed"
)

// A memo is sealed under its key: another memo cannot stand in for it.
func TestAMemoIsSealed(t *testing.T) {
	inner, _ := memory()
	s := sealed.New(inner, ring(t, keyA))
	one, two := checkpoint.MemoOf(checkpoint.Scope{9}, "test", "one"), checkpoint.MemoOf(checkpoint.Scope{9}, "test", "two")
	must(t, s.Remember(t.Context(), time.Hour, checkpoint.Memo{Key: one, Value: []byte("THE-ANSWER")}))
	raw, err := inner.Recall(t.Context(), one)
	must(t, err)
	if bytes.Contains(raw[0], []byte("THE-ANSWER")) {
		t.Fatal("the store sees it")
	}
	must(t, inner.Remember(t.Context(), time.Hour, checkpoint.Memo{Key: two, Value: raw[0]}))
	if _, err := s.Recall(t.Context(), two); !errors.Is(err, checkpoint.ErrCorrupt) {
		t.Fatalf("moved to another key: %v", err)
	}
	if got, err := s.Recall(t.Context(), one); err != nil || string(got[0]) != "THE-ANSWER" {
		t.Fatalf("recalled %q, %v", got, err)
	}
}
