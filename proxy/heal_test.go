package proxy

import (
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/relay"
)

// The pieces of scripted streams, in both dialects.
const (
	chatAsk     = `{"model":"gpt-x","stream":true,"messages":[{"role":"user","content":"Say it"}]}`
	messagesAsk = `{"model":"claude-sonnet-4-5","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"Say it"}]}`
	done        = "data: [DONE]\n\n"
	messageStop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
)

// oc is a content chunk.
func oc(text string) string {
	return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-x","choices":[{"index":0,"delta":{"content":` + quote(text) + `},"finish_reason":null}]}` + "\n\n"
}

func fr(reason string) string {
	return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-x","choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}` + "\n\n"
}

// ms starts a message and its first text block.
func ms() string {
	return "event: message_start\n" + `data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":9,"output_tokens":1}}}` + "\n\n" +
		"event: content_block_start\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n"
}

func mt(text string) string {
	return "event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":` + quote(text) + `}}` + "\n\n"
}

// me ends the block and the message.
func me() string {
	return "event: content_block_stop\n" + `data: {"type":"content_block_stop","index":0}` + "\n\n" +
		"event: message_delta\n" + `data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":12}}` + "\n\n" + messageStop
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// text is the text of a stream as its client reads it, in either dialect.
func text(t *testing.T, body string) string {
	t.Helper()
	var out strings.Builder
	for line := range strings.SplitSeq(body, "\n") {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var e struct {
			Choices []struct{ Delta struct{ Content string } }
			Delta   struct{ Text string }
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatalf("client got %q: %v", data, err)
		}
		for _, c := range e.Choices {
			out.WriteString(c.Delta.Content)
		}
		out.WriteString(e.Delta.Text)
	}
	return out.String()
}

func TestUntouchedStreamIsByteIdenticalBothWays(t *testing.T) {
	for _, c := range []struct{ name, path, ask, stream string }{
		{"chat", "/v1/chat/completions", " " + chatAsk + "\n", oc("") + oc("one ") + ": note\n\n" + oc("two") + fr("stop") + done},
		{"messages", "/v1/messages?beta=true&x=%2F;y", messagesAsk, ms() + mt("one ") + "event: ping\ndata: {\"type\": \"ping\"}\n\n" + mt("two") + me()},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProvider(t, func(a *asked) { a.stream("request-id: req_1"); a.chunk(c.stream); a.end() })
			s := start(t, p)
			res := dial(t, s.addr).post(c.path, c.ask, "X-Odd-Name: kept").response()
			got, err := allOf(res)
			if err != nil || got != c.stream {
				t.Fatalf("client got %q, %v; want %q", got, err, c.stream)
			}
			a := p.next()
			if string(a.body) != c.ask || a.path != c.path {
				t.Fatalf("provider got %s %q, want %s %q", a.path, a.body, c.path, c.ask)
			}
			if a.req.Header.Get("X-Odd-Name") != "kept" || !strings.Contains(a.head, "X-Odd-Name: kept\r\n") {
				t.Fatalf("a header was lost: %s", a.head)
			}
			if res.Header.Get("request-id") != "req_1" || res.Header.Get(headerRun) == "" {
				t.Fatalf("response header: %v", res.Header)
			}
			if got := s.notes.outcome(t); got != "completed" {
				t.Fatalf("outcome %q", got)
			}
		})
	}
}

func TestCutStreamHeals(t *testing.T) {
	said := "The quick brown fox jumps over the lazy dog and runs into"
	cuts := map[string]func(*asked){
		"RST":             func(a *asked) { a.rst() },
		"FIN":             func(a *asked) { a.fin() },
		"polite end":      func(a *asked) { a.end() },
		"half event, FIN": func(a *asked) { a.chunk("data: {\"id"); a.fin() },
	}
	for name, cut := range cuts {
		t.Run("chat, "+name, func(t *testing.T) {
			p := newProvider(t,
				func(a *asked) { a.stream(); a.chunks(oc(""), oc(said)); cut(a) },
				func(a *asked) {
					a.stream()
					a.chunks(oc(said[len(said)-40:]), oc(" the woods."), fr("stop"), done)
					a.end()
				},
			)
			s := start(t, p)
			got, err := allOf(dial(t, s.addr).post("/v1/chat/completions", chatAsk).response())
			if err != nil || text(t, got) != said+" the woods." {
				t.Fatalf("client read %q, %v", text(t, got), err)
			}
			if strings.Count(got, done) != 1 || p.hits() != 2 {
				t.Fatalf("%d ends, %d requests", strings.Count(got, done), p.hits())
			}
			if got := s.notes.outcome(t); got != "healed" {
				t.Fatalf("outcome %q", got)
			}
		})
		t.Run("messages, "+name, func(t *testing.T) {
			p := newProvider(t,
				func(a *asked) { a.stream(); a.chunks(ms(), mt(said)); cut(a) },
				func(a *asked) { a.stream(); a.chunks(ms(), mt(" the woods."), me()); a.end() },
			)
			s := start(t, p)
			got, err := allOf(dial(t, s.addr).post("/v1/messages", messagesAsk).response())
			if err != nil || text(t, got) != said+" the woods." {
				t.Fatalf("client read %q, %v", text(t, got), err)
			}
			if strings.Count(got, "event: message_start") != 1 || strings.Count(got, messageStop) != 1 || p.hits() != 2 {
				t.Fatalf("%d requests, client got %s", p.hits(), got)
			}
		})
	}
}

// A provider that says its error before the stream is retried with nothing sent
// to the client, whose status is then the real one.
func TestHeadIsWithheldThroughRetries(t *testing.T) {
	overloaded := func(a *asked) {
		a.answer(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "Content-Type: application/json", "request-id: req_o")
	}
	t.Run("until it works", func(t *testing.T) {
		p := newProvider(t, overloaded, func(a *asked) { a.stream(); a.chunks(ms(), mt("hi"), me()); a.end() })
		s := start(t, p)
		res := dial(t, s.addr).post("/v1/messages", messagesAsk).response()
		got, err := allOf(res)
		if res.StatusCode != 200 || err != nil || text(t, got) != "hi" {
			t.Fatalf("status %d, %q, %v", res.StatusCode, got, err)
		}
	})
	t.Run("or the real status is told, with the advice not to multiply our tries (F7)", func(t *testing.T) {
		p := newProvider(t, overloaded)
		s := start(t, p, relayed(func(c *relay.Config) { c.Recoveries = 2 }))
		res := dial(t, s.addr).post("/v1/messages", messagesAsk).response()
		got, _ := allOf(res)
		if res.StatusCode != 529 || !strings.Contains(got, "Overloaded") || res.Header.Get("x-should-retry") != "false" || res.Header.Get("request-id") != "req_o" {
			t.Fatalf("status %d, header %v, body %s", res.StatusCode, res.Header, got)
		}
		if p.hits() != 3 {
			t.Fatalf("%d requests", p.hits())
		}
	})
}

func TestHeartbeatWhileRecovering(t *testing.T) {
	go2 := make(chan struct{})
	p := newProvider(t,
		func(a *asked) { a.stream(); a.chunks(ms(), mt("one two three ")); a.rst() },
		func(a *asked) { <-go2; a.stream(); a.chunks(ms(), mt("four"), me()); a.end() },
	)
	s := start(t, p, relayed(func(c *relay.Config) { c.Heartbeat = 20 * time.Millisecond }))
	res := dial(t, s.addr).post("/v1/messages", messagesAsk).response()
	head := until(t, res.Body, "event: ping\ndata: {\"type\":\"ping\"}\n\n")
	close(go2)
	rest, err := io.ReadAll(res.Body)
	if err != nil || text(t, head+string(rest)) != "one two three four" {
		t.Fatalf("client read %q, %v", head+string(rest), err)
	}
}

// What cannot be healed ends with the dialect's error and then without the last
// chunk, so that no client takes it for whole (FIELD-REPORTS F12).
func TestGivingUpAborts(t *testing.T) {
	for _, c := range []struct {
		name, path, ask, want string
		say                   []string
	}{
		{"chat", "/v1/chat/completions", chatAsk, `"error"`, []string{oc("some words here")}},
		{"messages", "/v1/messages", messagesAsk, "event: error\n", []string{ms(), mt("some words here")}},
	} {
		script := func(a *asked) { a.stream(); a.chunks(c.say...); a.rst() }
		for _, version := range []string{"1.1", "1.0"} {
			for _, header := range []string{"X-Plain: 1", "Connection: close"} {
				t.Run(c.name+" for HTTP/"+version+" with "+header, func(t *testing.T) {
					s := start(t, newProvider(t, script), relayed(func(c *relay.Config) { c.Recoveries = -1 }))
					cl := dial(t, s.addr)
					cl.say(strings.Replace("POST "+c.path+" HTTP/"+version+"\r\nHost: x\r\n"+header+"\r\nContent-Length: N\r\n\r\n", "N", itoa(len(c.ask)), 1) + c.ask)
					raw, err := io.ReadAll(cl.br)
					if !strings.Contains(string(raw), c.want) {
						t.Fatalf("no error event in %q (%v)", raw, err)
					}
					if strings.HasSuffix(string(raw), "0\r\n\r\n") || strings.Contains(string(raw), done) || strings.Contains(string(raw), messageStop) {
						t.Fatalf("the response ends as if it were whole: %q", raw)
					}
					if version == "1.0" && err == nil {
						t.Fatal("a body without chunks ended politely: nobody can tell that it was cut")
					}
					if version == "1.0" && strings.Contains(string(raw), "chunked") {
						t.Fatalf("chunks for an HTTP/1.0 client: %q", raw)
					}
				})
			}
		}
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
