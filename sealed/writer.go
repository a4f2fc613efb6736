package sealed

import (
	"context"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// Hold implements [checkpoint.Behind].
func (b behind) Hold(f checkpoint.Fence, owner checkpoint.Owner, r checkpoint.Record, lost func(error)) checkpoint.Writer {
	t, ok := b.key(f)
	if !ok {
		go lost(checkpoint.ErrFenced)
		return &writer{}
	}
	// The store needs the record as it has it, to restore it: the same key
	// sealed again, in another envelope.
	outer := b.keys.wrap(f.Key, r, t)
	if len(r.Log) > 0 {
		outer.Log = t.crypt(0, r.Log)
	}
	return &writer{
		inner: b.inner.Hold(f, owner, outer, func(err error) {
			b.forget(f)
			lost(err)
		}),
		key: t, done: func() { b.forget(f) },
	}
}

// writer is a sealed [checkpoint.Writer].
type writer struct {
	inner checkpoint.Writer // nil: fenced before it began
	key   turnKey
	done  func()
}

// Append implements [checkpoint.Writer].
func (w *writer) Append(offset int64, p []byte) {
	if w.inner != nil {
		if offset >= 0 {
			p = w.key.crypt(offset, p)
		}
		w.inner.Append(offset, p)
	}
}

// Mark implements [checkpoint.Writer].
func (w *writer) Mark(s checkpoint.State) {
	if w.inner != nil {
		w.inner.Mark(s)
	}
}

// Sync implements [checkpoint.Writer].
func (w *writer) Sync(ctx context.Context) error {
	if w.inner == nil {
		return checkpoint.ErrFenced
	}
	return w.inner.Sync(ctx)
}

// Settle implements [checkpoint.Writer].
func (w *writer) Settle(s checkpoint.State) {
	if w.inner != nil {
		w.inner.Settle(s)
		w.done()
	}
}

// Forget implements [checkpoint.Writer].
func (w *writer) Forget() {
	if w.inner != nil {
		w.inner.Forget()
		w.done()
	}
}
