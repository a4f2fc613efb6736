package proxy

import (
	"context"
	"slices"
	"sync"
	"time"
)

// calling is the context of calls that a driver waits for itself, one after the other: what
// [context.WithCancel] makes, for little where nobody looks at Done. [context.AfterFunc]
// knows a context that has a method of that name, and so does [upstream.Client.Open].
type calling struct {
	mu    sync.Mutex
	ended bool
	done  chan struct{} // nil: nobody looked yet
	after []hook
	hooks int // that there ever were
}

// hook is what is to be done at the end.
type hook struct {
	id int
	do func()
}

// end ends the calls: that under way, and those that would follow.
func (c *calling) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return
	}
	c.ended = true
	if c.done != nil {
		close(c.done)
	}
	for _, h := range c.after {
		go h.do()
	}
	c.after = nil
}

// AfterFunc has f run by a goroutine of its own at the end; stop reports whether it kept it from that.
func (c *calling) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		go f()
		return func() bool { return false }
	}
	c.hooks++
	id := c.hooks
	c.after = append(c.after, hook{id, f})
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		n := len(c.after)
		c.after = slices.DeleteFunc(c.after, func(h hook) bool { return h.id == id })
		return len(c.after) < n
	}
}

// Done implements [context.Context].
func (c *calling) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.ended {
			close(c.done)
		}
	}
	return c.done
}

// Err implements [context.Context].
func (c *calling) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return context.Canceled
	}
	return nil
}

// Deadline implements [context.Context]: there is none.
func (*calling) Deadline() (t time.Time, ok bool) { return t, false }

// Value implements [context.Context]: there are none.
func (*calling) Value(any) any { return nil }
