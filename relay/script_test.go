package relay_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

// The script notation of FIELD-REPORTS, as functions that return whole events.

func quoted(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Messages.

func event(name, data string) string { return "event: " + name + "\ndata: " + data + "\n\n" }

func ms(id string) string {
	return event("message_start", `{"type":"message_start","message":{"model":"claude-sonnet-4-5","id":"`+id+`","type":"message","role":"assistant","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}`)
}

func block(i int, content string) string {
	return event("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{%s}}`, i, content))
}

func bText(i int) string  { return block(i, `"type":"text","text":""`) }
func bThink(i int) string { return block(i, `"type":"thinking","thinking":"","signature":""`) }
func bTool(i int, id, name string) string {
	return block(i, `"type":"tool_use","id":"`+id+`","name":"`+name+`","input":{}`)
}

func delta(i int, body string) string {
	return event("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{%s}}`, i, body))
}

func tx(i int, s string) string  { return delta(i, `"type":"text_delta","text":`+quoted(s)) }
func kx(i int, s string) string  { return delta(i, `"type":"thinking_delta","thinking":`+quoted(s)) }
func sgn(i int, s string) string { return delta(i, `"type":"signature_delta","signature":`+quoted(s)) }
func jx(i int, s string) string {
	return delta(i, `"type":"input_json_delta","partial_json":`+quoted(s))
}
func stop(i int) string {
	return event("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i))
}
func md(reason string, out int) string {
	return event("message_delta", fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":"%s","stop_sequence":null},"usage":{"output_tokens":%d}}`, reason, out))
}

var (
	me   = event("message_stop", `{"type":"message_stop"}`)
	ping = event("ping", `{"type":"ping"}`)
)

func errEvent(kind string) string {
	return event("error", `{"type":"error","error":{"type":"`+kind+`","message":"told by the provider"}}`)
}

// Chat.

func chunk(id, delta, finish string) string {
	if finish != "null" {
		finish = `"` + finish + `"`
	}
	return `data: {"id":"` + id + `","object":"chat.completion.chunk","created":1770000000,"model":"gpt-4o-mini","choices":[{"index":0,"delta":{` + delta + `},"finish_reason":` + finish + "}]}\n\n"
}

func role(id string) string  { return chunk(id, `"role":"assistant","content":""`, "null") }
func oc(id, s string) string { return chunk(id, `"content":`+quoted(s), "null") }
func rc(id, s string) string { return chunk(id, `"reasoning_content":`+quoted(s), "null") }
func tc(id string, i int, call, name, args string) string {
	return chunk(id, fmt.Sprintf(`"tool_calls":[{"index":%d,"id":"%s","type":"function","function":{"name":"%s","arguments":%s}}]`, i, call, name, quoted(args)), "null")
}

func ta(id string, i int, args string) string {
	return chunk(id, fmt.Sprintf(`"tool_calls":[{"index":%d,"function":{"arguments":%s}}]`, i, quoted(args)), "null")
}
func fr(id, reason string) string { return chunk(id, "", reason) }
func use(id string, in, out int) string {
	return fmt.Sprintf(`data: {"id":"%s","object":"chat.completion.chunk","created":1770000000,"model":"gpt-4o-mini","choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`+"\n\n", id, in, out, in+out)
}

const done = "data: [DONE]\n\n"

// wire is what a story needs to be told in either dialect.
type wire struct {
	family
	request string
	// begin is the head of a message and what opens its first text; text goes on
	// in it; end ends it with stop and the terminator.
	begin func(id string) string
	text  func(id, s string) string
	end   func(id string) string
	// tool is the second block: a call that is opened; args goes on in it;
	// called closes it and ends the turn as tool use.
	tool   func(id, call, name string) string
	args   func(id, s string) string
	called func(id string) string
	stop   string // how a natural end is spelled
	asks   string // and how one that asks for tools
	beat   string // the heartbeat of WIRE 3.5
}

var chatWire = wire{
	family:  chat,
	request: `{"model":"gpt-4o-mini","stream":true,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"messages":[{"role":"user","content":"go"}]}`,
	begin:   role,
	text:    oc,
	end:     func(id string) string { return fr(id, "stop") + done },
	tool:    func(id, call, name string) string { return tc(id, 0, call, name, "") },
	args:    func(id, s string) string { return ta(id, 0, s) },
	called:  func(id string) string { return fr(id, "tool_calls") + done },
	stop:    "stop", asks: "tool_calls", beat: ": keep-alive\n",
}

var messagesWire = wire{
	family:  messages,
	request: `{"model":"claude-sonnet-4-5","max_tokens":4000,"stream":true,"tools":[{"name":"f","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"go"}]}`,
	begin:   func(id string) string { return ms(id) + bText(0) },
	text:    func(_, s string) string { return tx(0, s) },
	end:     func(string) string { return stop(0) + md("end_turn", 7) + me },
	tool:    func(_, call, name string) string { return stop(0) + bTool(1, call, name) },
	args:    func(_, s string) string { return jx(1, s) },
	called:  func(string) string { return stop(1) + md("tool_use", 7) + me },
	stop:    "end_turn", asks: "tool_use", beat: ping,
}

var wires = []wire{chatWire, messagesWire}

// each tells one story in both dialects.
func each(t *testing.T, story func(t *testing.T, w wire)) {
	t.Helper()
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) { story(t, w) })
	}
}

// What an upstream does: the endings of the notation.

func body(stream ...string) relaytest.Reply {
	r := relaytest.Reply{}
	for _, s := range stream {
		r.Chunks = append(r.Chunks, []byte(s))
	}
	return r
}

func fin(stream ...string) relaytest.Reply { return body(stream...) }
func rst(stream ...string) relaytest.Reply {
	r := body(stream...)
	r.End = interrupt.Ended{How: interrupt.Reset}
	return r
}

func hang(stream ...string) relaytest.Reply {
	r := body(stream...)
	r.Hang = true
	return r
}

func pinging(every time.Duration, pings string, stream ...string) relaytest.Reply {
	r := hang(stream...)
	r.Pings, r.Every = []byte(pings), every
	return r
}

func refusal(status int, answer string, header ...string) relaytest.Reply {
	r := body(answer)
	r.Status, r.Header = status, map[string]string{"Content-Type": "application/json"}
	for i := 0; i < len(header); i += 2 {
		r.Header[header[i]] = header[i+1]
	}
	return r
}

func unreachable(notSent bool) relaytest.Reply {
	return relaytest.Reply{Fail: &interrupt.Ended{How: interrupt.NoConnection, NotSent: notSent, Detail: "connection refused"}}
}

var prefilling = dialect.Ability{Manners: []turn.Manner{turn.Prefill, turn.Asked}}

// play sends w's request through a stream whose attempts are answered by replies
// in turn. One attempt more than there are replies fails the test.
func (w wire) play(t *testing.T, replies ...relaytest.Reply) played {
	t.Helper()
	return w.playWith(t, relay.Config{}, replies...)
}

func (w wire) playWith(t *testing.T, c relay.Config, replies ...relaytest.Reply) played {
	t.Helper()
	return w.stage(t, relaytest.World{Config: c}, replies...)
}

// inTurn answers each attempt with the next of replies, and what is beyond them with a refusal.
func inTurn(replies []relaytest.Reply) func(relaytest.Request) relaytest.Reply {
	return func(q relaytest.Request) relaytest.Reply {
		if q.N > len(replies) {
			return refusal(400, "{}")
		}
		return replies[q.N-1]
	}
}

func (w wire) stage(t *testing.T, world relaytest.World, replies ...relaytest.Reply) played {
	t.Helper()
	if len(world.Config.Targets) == 0 {
		world.Config.Targets = []relay.Target{{Name: "test", Ability: prefilling}}
	}
	world.Dialect = w.d
	res, err := world.Run([]byte(w.request), func(q relaytest.Request) relaytest.Reply {
		if q.N > len(replies) {
			t.Errorf("attempt %d is not in the script: %s", q.N, q.Body)
		}
		return inTurn(replies)(q)
	})
	if err != nil {
		t.Fatalf("%v\nclient has %s", err, res.Body)
	}
	if res.Broken != "" {
		t.Errorf("law: %s", res.Broken)
	}
	p := played{t: t, w: w, Result: res}
	if err := logHolds(w.d, []byte(w.request), res); err != nil {
		t.Errorf("checkpoint: %v\nclient has\n%s", err, res.Body)
	}
	return p
}

// played is how a story went.
type played struct {
	relaytest.Result
	t *testing.T
	w wire
}

// hits asserts how many requests the upstream saw.
func (p played) hits(n int) played {
	p.t.Helper()
	if len(p.Requests) != n {
		p.t.Errorf("upstream was asked %d times, want %d; plans %v", len(p.Requests), n, p.Plans())
	}
	return p
}

// planned asserts every plan and its reason.
func (p played) planned(want ...string) played {
	p.t.Helper()
	if got := p.Plans(); strings.Join(got, " ") != strings.Join(want, " ") {
		p.t.Errorf("plans %v, want %v", got, want)
	}
	return p
}

// because asserts the kinds of the causes.
func (p played) because(want ...interrupt.Kind) played {
	p.t.Helper()
	var got []interrupt.Kind
	for _, n := range p.Notes {
		if n.Kind == relay.NoteInterrupted {
			got = append(got, n.Cause.Kind)
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		p.t.Errorf("causes %v, want %v", got, want)
	}
	return p
}

// exactly asserts the bytes of a clean response.
func (p played) exactly(want ...string) played {
	p.t.Helper()
	p.clean()
	if got := string(p.Body); got != strings.Join(want, "") {
		p.t.Errorf("client got\n%s\nwant\n%s", got, strings.Join(want, ""))
	}
	return p
}

func (p played) clean() played {
	p.t.Helper()
	if p.End != relay.Clean || p.Head == nil || !p.Head.Stream || p.Head.Status != 200 {
		p.t.Errorf("ended %v with head %+v, outcome %s, plans %v", p.End, p.Head, p.Outcome(), p.Plans())
	}
	return p
}

// message asserts what the official SDK makes of a clean response.
func (p played) message(text, finish string, calls ...string) played {
	p.t.Helper()
	p.clean()
	m, err := p.w.read(p.Body)
	switch {
	case err != nil:
		p.t.Errorf("the SDK cannot read it: %v\n%s", err, p.Body)
	case m.text != text || m.finish != finish || strings.Join(m.calls, " ") != strings.Join(calls, " "):
		p.t.Errorf("message text=%q finish=%s calls=%v, want text=%q finish=%s calls=%v\n%s", m.text, m.finish, m.calls, text, finish, calls, p.Body)
	}
	return p
}

// broken asserts an honest end: one error event that SDKs raise on, then an abort,
// and nothing that could pass for an end of the turn.
func (p played) broken(outcome string) played {
	p.t.Helper()
	_, faults, err := relaytest.Fold(p.w.d, mustParse(p.w.d, []byte(p.w.request)), p.Body)
	switch {
	case p.End != relay.Abort || p.Outcome() != outcome:
		p.t.Errorf("ended %v as %q, want an abort as %q\n%s", p.End, p.Outcome(), outcome, p.Body)
	case err != nil || len(faults) != 1:
		p.t.Errorf("%d error events, %v\n%s", len(faults), err, p.Body)
	}
	if _, err := p.w.read(p.Body); err == nil {
		p.t.Errorf("an SDK takes it for a success:\n%s", p.Body)
	}
	return p
}

// answered asserts an answer that is no stream.
func (p played) answered(status int, answer string) played {
	p.t.Helper()
	if p.Head == nil || p.Head.Stream || p.Head.Status != status || p.End != relay.Clean {
		p.t.Fatalf("answered %+v, ended %v as %s, want status %d", p.Head, p.End, p.Outcome(), status)
	}
	if answer != "" && string(p.Body) != answer {
		p.t.Errorf("body %s, want %s", p.Body, answer)
	}
	return p
}

// has and lacks assert on the client's bytes.
func (p played) has(n int, part string) played {
	p.t.Helper()
	if got := strings.Count(string(p.Body), part); got != n {
		p.t.Errorf("%d times %q, want %d:\n%s", got, part, n, p.Body)
	}
	return p
}

func (p played) lacks(part string) played { p.t.Helper(); return p.has(0, part) }
