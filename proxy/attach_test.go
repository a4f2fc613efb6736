package proxy

import (
	"fmt"
	"strings"
	"testing"
)

const (
	backgroundAsk  = `{"model":"gpt-4o","background":true,"stream":true,"input":"What is 2 + 2?"}`
	responsesAsk   = `{"model":"gpt-4o","stream":true,"input":"What is 2 + 2?"}`
	interactionAsk = `{"model":"gemini-3-pro","stream":true,"background":true,"input":"What is 2 + 2?"}`
)

// heldEvents is a response in the background, event by event.
func heldEvents(background bool) (all []string) {
	seq := 0
	ev := func(typ, more string) {
		all = append(all, fmt.Sprintf("event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":%d%s}\n\n", typ, typ, seq, more))
		seq++
	}
	res := func(status, output string) string {
		return fmt.Sprintf(`,"response":{"id":"resp_1","object":"response","status":%q,"background":%v,"model":"gpt-4o","output":[%s]}`, status, background, output)
	}
	if background {
		ev("response.created", res("queued", ""))
		ev("response.queued", res("queued", ""))
	} else {
		ev("response.created", res("in_progress", ""))
	}
	ev("response.in_progress", res("in_progress", ""))
	ev("response.output_item.added", `,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}`)
	ev("response.content_part.added", `,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}`)
	for _, w := range []string{"2 + 2", " equals", " 4", "."} {
		ev("response.output_text.delta", `,"item_id":"msg_1","output_index":0,"content_index":0,"delta":"`+w+`"`)
	}
	ev("response.output_text.done", `,"item_id":"msg_1","output_index":0,"content_index":0,"text":"2 + 2 equals 4."`)
	part := `{"type":"output_text","text":"2 + 2 equals 4.","annotations":[]}`
	ev("response.content_part.done", `,"item_id":"msg_1","output_index":0,"content_index":0,"part":`+part)
	item := `{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[` + part + `]}`
	ev("response.output_item.done", `,"output_index":0,"item":`+item)
	ev("response.completed", res("completed", item))
	return all
}

// A background response is cut twice; its provider sees two requests for the rest of
// it, with the caller's credential and query and no body, and nothing else.
func TestResponseIsAttachedToOverSockets(t *testing.T) {
	all := heldEvents(true)
	p := newProvider(t,
		func(a *asked) { a.stream(); a.chunks(all[:6]...); a.rst() },
		func(a *asked) { a.stream(); a.chunks(all[6:8]...); a.chunk("event: resp"); a.fin() },
		func(a *asked) { a.stream(); a.chunks(all[8:]...); a.end() },
	)
	s := start(t, p)
	res := dial(t, s.addr).post("/v1/responses?api-version=1", backgroundAsk, "Authorization: Bearer sk", "OpenAI-Organization: org", "Idempotency-Key: mine").response()
	got, err := allOf(res)
	if err != nil || got != strings.Join(all, "") {
		t.Fatalf("client got %q, %v", got, err)
	}
	if a := p.next(); string(a.body) != backgroundAsk || a.path != "/v1/responses?api-version=1" {
		t.Errorf("first: %s %q", a.path, a.body)
	}
	for _, after := range []int{5, 7} {
		a := p.next()
		if want := fmt.Sprintf("/v1/responses/resp_1?api-version=1&stream=true&starting_after=%d", after); a.req.Method != "GET" || a.path != want || len(a.body) > 0 {
			t.Errorf("%s %s %q, want GET %s", a.req.Method, a.path, a.body, want)
		}
		h := a.req.Header
		if h.Get("Authorization") != "Bearer sk" || h.Get("OpenAI-Organization") != "org" || h.Get("Accept-Encoding") != "identity" || h.Get("Idempotency-Key") != "" || h.Get("Content-Type") != "" {
			t.Errorf("header: %v", h)
		}
	}
	if n := p.hits(); n != 3 || s.notes.outcome(t) != "healed" {
		t.Errorf("%d requests, %s", n, s.notes.outcome(t))
	}
}

// The client leaves: the provider is told, under its own path and credential. With
// X-Run-On-Disconnect: finish it is not.
func TestAbandonedResponseIsCancelled(t *testing.T) {
	for _, c := range []struct{ name, path, ask, first, cancel string }{
		{"responses", "/v1/responses", backgroundAsk, strings.Join(heldEvents(true)[:6], ""), "/v1/responses/resp_1/cancel"},
		{"interactions", "/v1beta/interactions?key=k", interactionAsk, "event: interaction.created\ndata: {\"interaction\":{\"id\":\"v1_1\",\"status\":\"in_progress\",\"model\":\"gemini-3-pro\"},\"event_type\":\"interaction.created\",\"event_id\":\"e1\"}\n\n" +
			"event: step.start\ndata: {\"index\":0,\"step\":{\"type\":\"model_output\"},\"event_type\":\"step.start\",\"event_id\":\"e2\"}\n\n" +
			"event: step.delta\ndata: {\"index\":0,\"delta\":{\"type\":\"text\",\"text\":\"2 + 2\"},\"event_type\":\"step.delta\",\"event_id\":\"e3\"}\n\n", "/v1beta/interactions/v1_1/cancel?key=k"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProvider(t,
				func(a *asked) { a.stream(); a.chunk(c.first); a.hang() },
				func(a *asked) { a.answer(200, "{}") },
			)
			s := start(t, p, func(cfg *Config) {
				cfg.Upstreams = append(cfg.Upstreams, Upstream{Name: "gemini", URL: p.url()})
			})
			conn := dial(t, s.addr)
			res := conn.post(c.path, c.ask, "Authorization: Bearer sk").response()
			buf := make([]byte, 1)
			if _, err := res.Body.Read(buf); err != nil {
				t.Fatal(err)
			}
			first := p.next()
			conn.c.Close()
			within(t, "the stream's connection is closed", first.left)
			a := p.next()
			if a.req.Method != "POST" || a.path != c.cancel || a.req.Header.Get("Authorization") != "Bearer sk" {
				t.Errorf("%s %s %v", a.req.Method, a.path, a.req.Header)
			}
			if got := s.notes.outcome(t); got != "client_gone" {
				t.Errorf("outcome %s", got)
			}
		})
	}
}

// A route turns background on: the provider sees it, the caller sees the foreground's
// stream and a header, cut or not. A caller that wants nothing stored is left alone.
func TestRouteTurnsBackgroundOn(t *testing.T) {
	all := heldEvents(true)
	p := newProvider(t,
		func(a *asked) { a.stream(); a.chunks(all[:7]...); a.rst() },
		func(a *asked) { a.stream(); a.chunks(all[7:]...); a.end() },
		func(a *asked) { a.stream(); a.chunks(heldEvents(false)...); a.end() },
	)
	s := start(t, p, func(c *Config) {
		c.Routes = []Route{{Model: "gpt-*", Targets: []RouteTarget{{Upstream: "openai"}}, Background: true}}
	})
	res := dial(t, s.addr).post("/v1/responses", responsesAsk).response()
	got, err := allOf(res)
	if want := strings.Join(heldEvents(false), ""); err != nil || got != want || res.Header.Get(headerBackground) != "on" {
		t.Fatalf("client got %v, %v\n%s\nwant\n%s", res.Header, err, got, want)
	}
	if a := p.next(); string(a.body) != `{"model":"gpt-4o","stream":true,"input":"What is 2 + 2?","background":true}` {
		t.Errorf("provider got %s", a.body)
	}
	if a := p.next(); a.path != "/v1/responses/resp_1?stream=true&starting_after=6" {
		t.Errorf("provider got %s", a.path)
	}
	stateless := `{"model":"gpt-4o","stream":true,"store":false,"input":"x"}`
	res = dial(t, s.addr).post("/v1/responses", stateless).response()
	if _, err := allOf(res); err != nil || res.Header.Get(headerBackground) != "" {
		t.Errorf("%v %v", err, res.Header)
	}
	if a := p.next(); string(a.body) != stateless {
		t.Errorf("provider got %s", a.body)
	}
}
