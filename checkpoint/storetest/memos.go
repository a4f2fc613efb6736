package storetest

import (
	"bytes"
	"context"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

func memo(name string, value string) checkpoint.Memo {
	return checkpoint.Memo{Key: checkpoint.MemoOf(checkpoint.Scope{1}, "test", name), Value: []byte(value)}
}

// recall returns the values kept under names, "" for none.
func (b *bench) recall(s checkpoint.Memos, names ...string) (got []string) {
	b.Helper()
	keys := make([]checkpoint.MemoKey, len(names))
	for i, name := range names {
		keys[i] = memo(name, "").Key
	}
	values, err := s.Recall(b.ctx, keys...)
	if err != nil || len(values) != len(names) {
		b.Fatalf("recall %q: %q, %v", names, values, err)
	}
	for _, v := range values {
		got = append(got, string(v))
	}
	return got
}

func (b *bench) recalls(s checkpoint.Memos, name, want string) {
	b.Helper()
	if got := b.recall(s, name)[0]; got != want {
		b.Fatalf("%s: recalled %q, want %q", name, got, want)
	}
}

func recalled(b *bench) {
	s := power[checkpoint.Memos](b)
	b.recalls(s, "nothing", "")
	b.want(s.Remember(b.ctx, time.Hour, memo("one", "first"), memo("two", "a\x00\xff\r\n")), nil)
	b.want(s.Remember(b.ctx, time.Hour, memo("one", "second")), nil)
	b.want(s.Remember(b.ctx, time.Hour, memo("one", "second")), nil)
	got := b.recall(s, "two", "nothing", "one", "two")
	for i, want := range []string{"a\x00\xff\r\n", "", "second", "a\x00\xff\r\n"} {
		if got[i] != want {
			b.Fatalf("recalled %q", got)
		}
	}
	if none, err := s.Recall(b.ctx); err != nil || len(none) != 0 {
		b.Fatalf("no keys: %q, %v", none, err)
	}
	b.want(s.Remember(b.ctx, time.Hour), nil)
}

func memoCopies(b *bench) {
	s := power[checkpoint.Memos](b)
	m := memo("one", "mine")
	b.want(s.Remember(b.ctx, time.Hour, m), nil)
	copy(m.Value, "XXXX")
	got, err := s.Recall(b.ctx, m.Key)
	if err != nil || !bytes.Equal(got[0], []byte("mine")) {
		b.Fatalf("%q, %v", got, err)
	}
	copy(got[0], "YYYY")
	b.recalls(s, "one", "mine")
}

func nothingRemembered(b *bench) {
	s := power[checkpoint.Memos](b)
	ended, cancel := context.WithCancel(b.ctx)
	cancel()
	b.want(s.Remember(ended, time.Hour, memo("one", "x")), checkpoint.ErrUnavailable)
	b.recalls(s, "one", "")
	_, err := s.Recall(ended, memo("one", "").Key)
	b.want(err, checkpoint.ErrUnavailable)
}
