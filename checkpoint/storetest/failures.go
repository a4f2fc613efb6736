package storetest

import (
	"context"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// lostAnswers and neverArrived: a caller that repeats a call until it is answered
// ends in the same place whether the failed call took effect or not.
func lostAnswers(b *bench) { repeated(b, After) }

func neverArrived(b *bench) { repeated(b, Before) }

func repeated(b *bench, m Moment) {
	s := NewSleepy(b.store)
	b.store = s
	once := func(what string, call func() error) {
		b.Helper()
		s.Fail(m)
		b.want(call(), checkpoint.ErrUnavailable)
		if err := call(); err != nil {
			b.Fatalf("%s again: %v", what, err)
		}
	}
	var f checkpoint.Fence
	once("claim", func() (err error) {
		f, _, err = s.Claim(b.ctx, key("run"), us, head("run"))
		return err
	})
	once("append", func() error { return s.Append(b.ctx, f, 0, []byte("abc")) })
	once("append", func() error { return s.Append(b.ctx, f, 3, []byte("def")) })
	b.log("run", "abcdef")
	once("mark", func() error { return s.Mark(b.ctx, f, checkpoint.State{Phase: checkpoint.Broken}) })
	once("get", func() error { _, err := s.Get(b.ctx, key("run")); return err })
	once("release", func() error { return s.Release(b.ctx, f) })
	if r := b.get("run"); r.Owner != "" || r.State.Phase != checkpoint.Broken {
		b.Fatalf("after all: %+v", r)
	}
	f, _ = b.claim("run", them)
	once("delete", func() error { return s.Delete(b.ctx, f) })
	_, err := s.Get(b.ctx, key("run"))
	b.want(err, checkpoint.ErrNotFound)
}

func sleeping(b *bench) {
	s := NewSleepy(b.store)
	b.store = s
	f, _ := b.claim("run", us)
	s.Sleep()
	ctx, cancel := context.WithCancel(b.ctx)
	asleep := make(chan error)
	go func() { asleep <- s.Append(ctx, f, 0, []byte("lost")) }()
	cancel()
	b.want(<-asleep, checkpoint.ErrUnavailable)
	go func() { asleep <- s.Append(b.ctx, f, 0, []byte("late")) }()
	s.Wake()
	b.want(<-asleep, nil)
	b.log("run", "late")
}
