package proxy

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// shutdown calls Shutdown and tells when it returns.
func shutdown(ctx context.Context, s *proxied) (returned chan struct{}, err *error) {
	returned, err = make(chan struct{}), new(error)
	go func() {
		defer close(returned)
		*err = s.Shutdown(ctx)
	}()
	return returned, err
}

// FIELD-REPORTS I1, I3: a drain lets streams end, heals them meanwhile, and
// serves what still comes.
func TestDrainServesAndHealsToTheEnd(t *testing.T) {
	cut, finish := make(chan struct{}), make(chan struct{})
	said := "one two three four five six seven "
	p := newProvider(t,
		func(a *asked) { a.stream(); a.chunks(oc(said)); <-cut; a.rst() },
		func(a *asked) { a.stream(); a.chunks(oc("new"), fr("stop"), done); a.end() },
		func(a *asked) {
			a.stream()
			a.chunks(oc(said))
			<-finish
			a.chunks(oc("eight"), fr("stop"), done)
			a.end()
		},
	)
	s := start(t, p)
	res := dial(t, s.addr).post("/v1/chat/completions", chatAsk).response()
	head := until(t, res.Body, "seven ")
	returned, err := shutdown(t.Context(), s)
	eventually(t, "not ready", func() bool { return !s.Ready() && !s.Stats().Ready })
	if got, err := allOf(dial(t, s.addr).post("/v1/chat/completions", chatAsk).response()); err != nil || text(t, got) != "new" {
		t.Fatalf("a new request while draining: %q, %v", got, err)
	}
	close(cut)
	eventually(t, "the continuation is asked for", func() bool { return p.hits() == 3 })
	select {
	case <-returned:
		t.Fatal("Shutdown returned before the stream ended")
	default:
	}
	close(finish)
	rest, rerr := allOf(res)
	if rerr != nil || text(t, head+rest) != said+"eight" {
		t.Fatalf("client read %q, %v", head+rest, rerr)
	}
	within(t, "Shutdown returns", returned)
	if *err != nil {
		t.Errorf("shutdown: %v", *err)
	}
}

// At the deadline, and on a second Shutdown, what remains gets its dialect's error
// and an abort: not a bare cut.
func TestDrainDeadlineEndsHonestly(t *testing.T) {
	for name, phase := range map[string]struct {
		script func(*asked)
		seen   string
	}{
		"in the stream":   {func(a *asked) { a.stream(); a.chunks(ms(), mt("one two")); a.hang() }, "one two"},
		"before the head": {(*asked).hang, ""},
	} {
		for _, second := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				p := newProvider(t, phase.script)
				s := start(t, p)
				c := dial(t, s.addr).post("/v1/messages", messagesAsk)
				a := p.next()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var body io.Reader
				if phase.seen != "" {
					body = c.response().Body
					until(t, body, phase.seen)
				}
				returned, err := shutdown(ctx, s)
				eventually(t, "draining", func() bool { return !s.Ready() })
				if second {
					if err := s.Shutdown(t.Context()); err != nil {
						t.Error(err)
					}
				} else {
					cancel()
				}
				if phase.seen == "" {
					res := c.response()
					if got, _ := allOf(res); res.StatusCode != 503 || !strings.Contains(got, `"type":"error"`) {
						t.Errorf("%d %s", res.StatusCode, got)
					}
				} else if rest, err := io.ReadAll(body); err == nil || !strings.Contains(string(rest), "event: error\n") {
					t.Errorf("the stream ended with %q, %v", rest, err)
				}
				within(t, "the upstream connection is closed", a.left)
				within(t, "Shutdown returns", returned)
				if !errors.Is(*err, context.Canceled) {
					t.Errorf("shutdown: %v", *err)
				}
			})
		}
	}
}

// I2: a request is in flight until its body has ended, not until its head is out.
func TestRequestCountsUntilItsBodyEnds(t *testing.T) {
	finish := make(chan struct{})
	p := newProvider(t, func(a *asked) { a.stream(); a.chunk(oc("x")); <-finish; a.chunks(fr("stop"), done); a.end() })
	s := start(t, p)
	for _, path := range []string{"/v1/chat/completions", "/v1/other"} {
		res := dial(t, s.addr).post(path, chatAsk).response()
		until(t, res.Body, `"x"`)
		if got := s.Stats().Live; got != 1 {
			t.Errorf("%s: %d in flight", path, got)
		}
		finish <- struct{}{}
		allOf(res)
		eventually(t, "out of flight", func() bool { return s.Stats().Live == 0 })
	}
}

// A client that does not read its last words does not hold the process up.
func TestDrainDoesNotWaitForAReaderWhoDoesNotRead(t *testing.T) {
	p := newProvider(t, func(a *asked) {
		a.stream()
		for range 16 {
			a.chunk(oc(strings.Repeat("words and ", 100<<10)))
		}
		a.hang()
	})
	s := start(t, p)
	c := dial(t, s.addr).post("/v1/chat/completions", chatAsk)
	p.next()
	c.response()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	returned, _ := shutdown(ctx, s)
	within(t, "Shutdown returns", returned)
}
