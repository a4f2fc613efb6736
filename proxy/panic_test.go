package proxy

import (
	"io"
	"strings"
	"testing"

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
