package proxy

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/openaichat"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// explosive is chat with a bug.
type explosive struct {
	openaichat.Dialect
	where string
}

func (e explosive) Parse(b []byte) (*dialect.Request, error) {
	if e.where == "parse" {
		panic("in parse")
	}
	return e.Dialect.Parse(b)
}

func (e explosive) NewDecoder(r *dialect.Request) dialect.Decoder {
	return explosiveDecoder{e.Dialect.NewDecoder(r), e.where}
}

type explosiveDecoder struct {
	dialect.Decoder
	where string
}

func (e explosiveDecoder) Decode(dst []turn.Delta, ev sse.Event) ([]turn.Delta, error) {
	if e.where != "" && strings.Contains(string(ev.Data), e.where) {
		panic("in decode")
	}
	return e.Decoder.Decode(dst, ev)
}

// A bug costs the stream it strikes, which ends honestly, and nothing else.
func TestPanicEndsOneStreamHonestly(t *testing.T) {
	for _, c := range []struct {
		name, where, want string
		status            int
		aborted           bool
	}{
		{"before anything went upstream", "parse", `"error"`, 500, false},
		{"before the head", "first", `"error"`, 500, false},
		{"in the middle", "second", `"error"`, 200, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			saved := protectedPaths[0].dialect
			defer func() { protectedPaths[0].dialect = saved }()
			protectedPaths[0].dialect = explosive{where: c.where}
			more := make(chan struct{}, 1)
			p := newProvider(t, func(a *asked) {
				if a.req.Method == "GET" {
					a.answer(200, "{}")
					return
				}
				a.stream()
				a.chunk(oc("first"))
				<-more
				a.chunk(oc("second"))
				a.hang()
			})
			s := start(t, p)
			cl := dial(t, s.addr).post("/v1/chat/completions", chatAsk)
			res := cl.response()
			head := ""
			if c.aborted {
				head = until(t, res.Body, "first")
			}
			more <- struct{}{}
			rest, err := io.ReadAll(res.Body)
			if got := head + string(rest); res.StatusCode != c.status || !strings.Contains(got, c.want) || c.aborted != (err != nil) {
				t.Errorf("%d %q, %v", res.StatusCode, got, err)
			}
			if c.where != "parse" {
				within(t, "the upstream connection is closed", p.next().left)
			}
			eventually(t, "nothing is in flight", func() bool { return s.Stats().Live == 0 })
			if !strings.Contains(s.log.String(), "BUG:") {
				t.Errorf("log: %s", s.log)
			}
			if res := dial(t, s.addr).say("GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n").response(); res.StatusCode != 200 {
				t.Errorf("the next request: %d", res.StatusCode)
			}
		})
	}
}

// rude is an observer with a bug.
type rude struct{}

func (rude) Begin(Subject) Listener { panic("in an observer") }

// mined is a store that panics behind a claim that took effect.
type mined struct{ *common }

func (m mined) Claim(ctx context.Context, k checkpoint.TurnKey, o checkpoint.Owner, r checkpoint.Record) (checkpoint.Fence, *checkpoint.Record, error) {
	_, _, _ = m.common.Claim(ctx, k, o, r)
	panic("in a store")
}

// unread is a store that panics when a record that cannot be read is to go.
type unread struct{ *common }

func (u unread) Delete(context.Context, checkpoint.Fence) error { panic("in a store") }

// A bug that struck while a stream was being begun left its place at the turn taken, and the
// turn claimed: whoever asked again followed, for ever, a stream that nobody drove.
func TestPanicWhileAStreamIsBegunLeavesItsTurn(t *testing.T) {
	for _, c := range []struct {
		name, ask string
		change    func(*Config, *common)
		claimed   bool // the store never answered the claim
	}{
		{"in an observer", chatAsk, func(c *Config, _ *common) { c.Observer = rude{} }, false},
		{"in an observer of a call that does not stream", strings.Replace(chatAsk, "true", "false", 1), func(c *Config, _ *common) { c.Observer = rude{} }, false},
		{"in a store's claim", chatAsk, func(c *Config, st *common) { c.Store = mined{st} }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			st := newCommon()
			p := newProvider(t, func(a *asked) { a.stream(); a.chunks(oc("ok"), fr("stop"), done); a.end() })
			s := start(t, p, func(cfg *Config) {
				cfg.Store, cfg.ScopeKey = st, []byte("test")
				c.change(cfg, st)
			})
			for range 2 { // the second time nobody is there to be followed
				res := dial(t, s.addr).post("/v1/chat/completions", c.ask, headerRun+": r1").response()
				if got, err := allOf(res); res.StatusCode != 500 || !strings.Contains(got, `"error"`) || err != nil {
					t.Errorf("%d %q, %v", res.StatusCode, got, err)
				}
			}
			eventually(t, "nothing is in flight", func() bool { return s.Stats().Live == 0 })
			s.turns.mu.Lock()
			if n := len(s.turns.all); n != 0 {
				t.Errorf("%d turns are at hand", n)
			}
			s.turns.mu.Unlock()
			if c.claimed {
				return
			}
			eventually(t, "another process can have the turn", func() bool {
				_, _, err := st.Claim(t.Context(), keyOf("/v1/chat/completions", c.ask, "r1"), "another", checkpoint.Record{})
				return err == nil
			})
			if got := s.Stats().Ended.Us; got != 2 {
				t.Errorf("%d ends were ours", got)
			}
			if !strings.Contains(s.log.String(), `"outcome":"bug"`) {
				t.Errorf("log: %s", s.log)
			}
		})
	}
}

// What was claimed and cannot be read is given back, too.
func TestPanicWhileATurnIsTakenOverGivesItBack(t *testing.T) {
	st := newCommon()
	key := keyOf("/v1/chat/completions", chatAsk, "r1")
	f, _, err := st.Claim(t.Context(), key, "before", checkpoint.Record{Run: "r1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := st.Append(t.Context(), f, 0, []byte("\x00garbage")); err != nil {
		t.Fatal(err)
	}
	if err := st.Release(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	s := start(t, newProvider(t, either), func(cfg *Config) { cfg.Store, cfg.ScopeKey = unread{st}, []byte("test") })
	res := dial(t, s.addr).post("/v1/chat/completions", chatAsk, headerRun+": r1").response()
	if got, _ := allOf(res); res.StatusCode != 500 {
		t.Errorf("%d %s", res.StatusCode, got)
	}
	eventually(t, "another process can have the turn", func() bool {
		_, _, err := st.Claim(t.Context(), key, "another", checkpoint.Record{})
		return err == nil
	})
	eventually(t, "nothing is in flight", func() bool { return s.Stats().Live == 0 })
	s.turns.mu.Lock()
	defer s.turns.mu.Unlock()
	if n := len(s.turns.all); n != 0 {
		t.Errorf("%d turns are at hand", n)
	}
}
