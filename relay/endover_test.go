package relay_test

import (
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

const (
	chatHead = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	chatHalf = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"t1","type":"function","function":{"name":"f","arguments":"{\"a\":"}}]},"finish_reason":null}]}` + "\n\n"
	chatRest = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]},"finish_reason":null}]}` + "\n\n"
	chatText = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"Half of it"},"finish_reason":null}]}` + "\n\n"
	chatUse  = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}` + "\n\n"
	chatEnd  = `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}` + "\n\n"
	chatDone = "data: [DONE]\n\n"
	chatQ    = `{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}`

	msgHead = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n"
	msgHalf = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"f\",\"input\":{}}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":\"}}\n\n"
	msgRest = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"1}\"}}\n\nevent: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
	msgEnd  = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":9}}\n\n"
	msgStop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	msgQ    = `{"model":"m","max_tokens":99,"stream":true,"messages":[{"role":"user","content":"x"}]}`
)

var cutOff = interrupt.Ended{How: interrupt.Reset}

// attempts answers the n-th attempt with the n-th reply, and the last one again.
func attempts(rs ...relaytest.Reply) relaytest.Provider {
	return func(q relaytest.Request) relaytest.Reply { return rs[min(q.N, len(rs))-1] }
}

func stream(parts ...string) relaytest.Reply {
	return relaytest.Reply{Chunks: [][]byte{[]byte(strings.Join(parts, ""))}}
}

func broken(parts ...string) relaytest.Reply {
	r := stream(parts...)
	r.End = cutOff
	return r
}

func play(t *testing.T, d dialect.Dialect, body string, a dialect.Ability, p relaytest.Provider) relaytest.Result {
	t.Helper()
	w := relaytest.World{Dialect: d, Config: relay.Config{Targets: []relay.Target{{Ability: a}}}}
	res, err := w.Run([]byte(body), p)
	if err != nil || res.Broken != "" {
		t.Fatal(err, res.Broken)
	}
	return res
}

// A finish that asks for a half call, and then a reset: the provider did not end the
// turn over half a call, its connection broke. No terminator of ours may stand
// behind such a call; the turn is asked for again.
func TestFinishOverHalfACallNeedsItsTerminator(t *testing.T) {
	for _, c := range []struct {
		name              string
		d                 dialect.Dialect
		ask               string
		cut, whole, uncut relaytest.Reply
	}{
		{name: "chat", d: chat.d, ask: chatQ, cut: broken(chatHead, chatHalf, chatEnd), whole: stream(chatHead, chatHalf, chatRest, chatEnd, chatDone),
			uncut: stream(chatHead, chatHalf, chatEnd, chatDone)},
		{name: "messages", d: messages.d, ask: msgQ, cut: broken(msgHead, msgHalf, msgEnd), whole: stream(msgHead, msgHalf, msgRest, msgEnd, msgStop),
			uncut: stream(msgHead, msgHalf, msgEnd, msgStop)},
	} {
		t.Run(c.name+" cut", func(t *testing.T) {
			res := play(t, c.d, c.ask, dialect.Ability{}, attempts(c.cut, c.whole))
			if got, want := string(res.Body), string(c.whole.Chunks[0]); got != want || len(res.Requests) != 2 {
				t.Errorf("%d requests, got %s", len(res.Requests), got)
			}
		})
		t.Run(c.name+" as the provider ends it", func(t *testing.T) {
			// With its terminator it is the provider's answer, and ours to relay (DESIGN §1.3).
			res := play(t, c.d, c.ask, dialect.Ability{}, attempts(c.uncut))
			if got, want := string(res.Body), string(c.uncut.Chunks[0]); got != want || len(res.Requests) != 1 {
				t.Errorf("%d requests, got %s", len(res.Requests), got)
			}
		})
	}
}

// A usage record and [DONE] end a turn without a finish only on hosts known to give
// none. Everywhere else that is a truncation that looks like an end (A1), most of all
// inside a call.
func TestUsageAndDoneAreNoFinish(t *testing.T) {
	asked := []turn.Manner{turn.Asked}
	again := stream(chatHead, chatHalf, chatRest, chatEnd, chatDone)
	for _, c := range []struct {
		name     string
		ability  dialect.Ability
		first    relaytest.Reply
		requests int
	}{
		{"text", dialect.Ability{Manners: asked}, stream(chatHead, chatText, chatUse, chatDone), 2},
		{"a call", dialect.Ability{Manners: asked}, stream(chatHead, chatHalf, chatUse, chatDone), 2},
		{"a call on a host without finishes", dialect.Ability{NoFinish: true}, stream(chatHead, chatHalf, chatUse, chatDone), 2},
		{"text on a host without finishes", dialect.Ability{NoFinish: true}, stream(chatHead, chatText, chatUse, chatDone), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := play(t, chat.d, chatQ, c.ability, attempts(c.first, again))
			if len(res.Requests) < c.requests || c.requests == 1 && len(res.Requests) != 1 {
				t.Errorf("%d requests, want %d: %s", len(res.Requests), c.requests, res.Body)
			}
		})
	}
}

// A second message_start inside one stream is no part of one message: nobody gets to
// see it (D1), and the turn is healed like any other that broke.
func TestSecondStartOfTheProvidersOwn(t *testing.T) {
	whole := stream(msgHead, msgHalf, msgRest, msgEnd, msgStop)
	res := play(t, messages.d, msgQ, dialect.Ability{}, attempts(stream(msgHead, msgHalf, msgHead, msgHalf, msgRest, msgEnd, msgStop), whole))
	if got := string(res.Body); strings.Count(got, `"message_start"`) != 1 || got != string(whole.Chunks[0]) {
		t.Errorf("got %s", got)
	}
}

// A cut error body is not passed off as a whole one: half a JSON document with a
// Content-Length to match tells an SDK nothing.
func TestCutErrorBodyIsReplaced(t *testing.T) {
	for _, d := range []struct {
		d   dialect.Dialect
		ask string
	}{{chat.d, chatQ}, {messages.d, msgQ}} {
		res := play(t, d.d, d.ask, dialect.Ability{}, attempts(relaytest.Reply{Status: 400, Chunks: [][]byte{[]byte(`{"error":{"message":`)}, End: cutOff}))
		if res.Head.Status != 400 || !strings.HasSuffix(string(res.Body), "}") || strings.HasPrefix(string(res.Body), `{"error":{"message":`+"\n") {
			t.Errorf("%d %s", res.Head.Status, res.Body)
		}
	}
}

// An asked model says that nothing is missing, when the text it would go on with is
// closed already: neither the word nor an empty block for it reaches the client.
func TestSentinelBehindClosedTextOpensNoBlock(t *testing.T) {
	const (
		text  = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"All is said.\"}}\n\nevent: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n"
		think = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"hm\"}}\n\n"
		end   = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":9}}\n\n"
	)
	word := strings.Replace(text, "All is said.", "[[COMPLETE]]", 1)
	res := play(t, messages.d, msgQ, dialect.Ability{Manners: []turn.Manner{turn.Asked}},
		attempts(broken(msgHead, text, think), stream(msgHead, word, end, msgStop)))
	got := string(res.Body)
	if strings.Contains(got, "COMPLETE") || strings.Count(got, `"content_block":{"type":"text"`) != 1 || res.End != relay.Clean || !strings.Contains(got, "end_turn") {
		t.Errorf("ended %v: %s", res.End, got)
	}
}
