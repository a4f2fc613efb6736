package proxy

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// The context of calls is to all who are given it what context.WithCancel makes.
func TestCallingIsAContext(t *testing.T) {
	for _, c := range []struct {
		name string
		make func() (context.Context, func())
	}{
		{"context.WithCancel", func() (context.Context, func()) {
			ctx, cancel := context.WithCancel(context.Background())
			return ctx, cancel
		}},
		{"calling", func() (context.Context, func()) {
			c := &calling{}
			return c, c.end
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := c.make()
				early := ctx.Done()
				done := make(chan string, 4)
				after := func(name string, of context.Context) func() bool {
					return context.AfterFunc(of, func() { done <- name })
				}
				child, cancel := context.WithTimeout(ctx, time.Hour)
				defer cancel()
				brief, over := context.WithTimeout(ctx, time.Hour)
				over()
				after("child", child)
				after("kept", ctx)
				stop := after("stopped", ctx)
				if !stop() || stop() {
					t.Error("it is to be kept from running, once")
				}
				if ctx.Err() != nil || child.Err() != nil || brief.Err() == nil {
					t.Errorf("before the end: %v, %v, %v", ctx.Err(), child.Err(), brief.Err())
				}
				end()
				end()
				synctest.Wait()
				stop = after("late", ctx)
				synctest.Wait()
				if stop() {
					t.Error("what has run was kept from running")
				}
				close(done)
				var ran []string
				for name := range done {
					ran = append(ran, name)
				}
				slices.Sort(ran)
				if !slices.Equal(ran, []string{"child", "kept", "late"}) {
					t.Errorf("what ran is %v", ran)
				}
				<-early
				<-ctx.Done()
				if ctx.Err() != context.Canceled || context.Cause(child) != context.Canceled {
					t.Errorf("behind the end: %v, %v", ctx.Err(), context.Cause(child))
				}
				if _, ok := ctx.Deadline(); ok || ctx.Value("any") != nil {
					t.Error("it has a deadline or a value")
				}
			})
		})
	}
}
