package proxy

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/dialect"
)

// dialogue is a conversation in one dialect: a turn that breaks in its second call
// behind a whole first one, and the requests that follow it.
type dialogue struct {
	name, path string
	first      string   // asks for the turn
	broken     []string // events of the turn, up to the break
	whole      []string // a turn without calls
	second     string   // carries the result; § is where a note about the calls goes
	third      string   // goes on from there, and begins with the same bytes
	note       string   // how a note is spelled there, w being its words
}

// words is what the model is told of the call that broke.
var words = dialect.Hint([]string{"send"})

func respEvent(typ, members string) string {
	return ev(typ, `{"type":"`+typ+`","sequence_number":0,`+members+`}`)
}

func respCreated(id string) string {
	return respEvent("response.created", `"response":{"id":"`+id+`","object":"response","created_at":1,"status":"in_progress","model":"gpt-x","output":[],"usage":null}`)
}

func respText(id, text string) []string {
	item := `{"id":"msg_` + id + `","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":` + quote(text) + `}]}`
	return []string{
		respOpens(id), respSays(id, text),
		respEvent("response.output_item.done", `"output_index":0,"item":`+item),
		respEvent("response.completed", `"response":{"id":"`+id+`","object":"response","created_at":1,"status":"completed","model":"gpt-x","output":[`+item+`],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`),
	}
}

func respOpens(id string) string {
	return respEvent("response.output_item.added", `"output_index":0,"item":{"id":"msg_`+id+`","type":"message","status":"in_progress","content":[],"role":"assistant"}`) +
		respEvent("response.content_part.added", `"item_id":"msg_`+id+`","output_index":0,"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}`)
}

func respSays(id, text string) string {
	return respEvent("response.output_text.delta", `"item_id":"msg_`+id+`","output_index":0,"content_index":0,"delta":`+quote(text)+`,"logprobs":[]`)
}

// respCall opens a call and says part of its arguments; whole, it ends it.
func respCall(at int, call, name, args string, whole bool) string {
	item := func(status, args string) string {
		return fmt.Sprintf(`{"id":"fc_%s","type":"function_call","status":%q,"arguments":%q,"call_id":%q,"name":%q}`, call, status, args, call, name)
	}
	out := respEvent("response.output_item.added", fmt.Sprintf(`"output_index":%d,"item":%s`, at, item("in_progress", ""))) +
		respEvent("response.function_call_arguments.delta", fmt.Sprintf(`"item_id":"fc_%s","output_index":%d,"delta":%q`, call, at, args))
	if whole {
		out += respEvent("response.function_call_arguments.done", fmt.Sprintf(`"item_id":"fc_%s","output_index":%d,"arguments":%q`, call, at, args)) +
			respEvent("response.output_item.done", fmt.Sprintf(`"output_index":%d,"item":%s`, at, item("completed", args)))
	}
	return out
}

func gem(parts, more string) string {
	return `data: {"candidates":[{"content":{"role":"model","parts":[` + parts + `]},"index":0` + more + `}],"responseId":"g1","modelVersion":"gemini-x"}` + "\n\n"
}

func msCall(at int, call, name, args string, whole bool) string {
	out := ev("content_block_start", fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,"name":%q,"input":{}}}`, at, call, name)) +
		ev("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%q}}`, at, args))
	if whole {
		out += ev("content_block_stop", fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, at))
	}
	return out
}

func chatCall(at int, call, name, args string) string {
	return chatDelta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":%q}}]}`, at, call, name, args))
}

var dialogues = []dialogue{
	{
		name: "chat", path: "/v1/chat/completions",
		first:  `{"model":"gpt-x","stream":true,"messages":[{"role":"user","content":"Go"}]}`,
		broken: []string{oc(""), chatCall(0, "c1", "look", `{"at":1}`), chatCall(1, "c2", "send", `{"to":`)},
		whole:  []string{oc("Fine."), fr("stop"), done},
		second: `{"model":"gpt-x","stream":true,"messages":[{"role":"user","content":"Go"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}}]},{"role":"tool","tool_call_id":"c1","content":"seen§"}]}`,
		third:  `,{"role":"assistant","content":"Fine."},{"role":"user","content":"And?"}]}`,
		note:   `\n\nw`,
	},
	{
		name: "messages", path: "/v1/messages",
		first:  `{"model":"claude-sonnet-4-5","max_tokens":100,"stream":true,"messages":[{"role":"user","content":[{"type":"text","text":"Go","cache_control":{"type":"ephemeral"}}]}]}`,
		broken: []string{ms(), mt("A"), ev("content_block_stop", `{"type":"content_block_stop","index":0}`), msCall(1, "c1", "look", `{"at":1}`, true), msCall(2, "c2", "send", `{"to":`, false)},
		whole:  []string{ms(), mt("Fine."), me()},
		second: `{"model":"claude-sonnet-4-5","max_tokens":100,"stream":true,"messages":[{"role":"user","content":"Go"},{"role":"assistant","content":[{"type":"text","text":"A"},{"type":"tool_use","id":"c1","name":"look","input":{"at":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"seen"}§]}]}`,
		third:  `,{"role":"assistant","content":"Fine."},{"role":"user","content":"And?"}]}`,
		note:   `,{"type":"text","text":"w"}`,
	},
	{
		name: "responses", path: "/v1/responses",
		first:  `{"model":"gpt-x","stream":true,"store":false,"input":"Go"}`,
		broken: []string{respCreated("resp_1"), respCall(0, "c1", "look", `{"at":1}`, true), respCall(1, "c2", "send", `{"to":`, false)},
		whole:  append([]string{respCreated("resp_2")}, respText("resp_2", "Fine.")...),
		second: `{"model":"gpt-x","stream":true,"store":false,"input":[{"role":"user","content":"Go"},{"id":"fc_c1","type":"function_call","call_id":"c1","name":"look","arguments":"{\"at\":1}"},{"type":"function_call_output","call_id":"c1","output":"seen§"}]}`,
		third:  `,{"role":"assistant","content":"Fine."},{"role":"user","content":"And?"}]}`,
		note:   `\n\nw`,
	},
	{
		name: "gemini", path: "/v1beta/models/gemini-x:streamGenerateContent?alt=sse",
		first: `{"contents":[{"role":"user","parts":[{"text":"Go"}]}]}`,
		broken: []string{gem(`{"functionCall":{"id":"c1","name":"look","args":{"at":1}}}`, ""),
			gem(`{"functionCall":{"id":"c2","name":"send","willContinue":true}}`, ""), gem(`{"functionCall":{"partialArgs":[{"jsonPath":"$.to","stringValue":"a"}],"willContinue":true}}`, "")},
		whole:  []string{gem(`{"text":"Fine."}`, `,"finishReason":"STOP"`)},
		second: `{"contents":[{"role":"user","parts":[{"text":"Go"}]},{"role":"model","parts":[{"functionCall":{"id":"c1","name":"look","args":{"at":1}}}]},{"role":"user","parts":[{"functionResponse":{"id":"c1","name":"look","response":{"output":"seen"§}}}]}]}`,
		third:  `,{"role":"model","parts":[{"text":"Fine."}]},{"role":"user","parts":[{"text":"And?"}]}]}`,
		note:   `,"transmission_note":"w"`,
	},
}

// plain is a request without a note, noted the same as the model is to get it.
func (c *dialogue) plain(body string) string { return strings.Replace(body, "§", "", 1) }
func (c *dialogue) noted(body string) string {
	return strings.Replace(body, "§", strings.Replace(c.note, "w", words, 1), 1)
}

// last is the request behind second.
func (c *dialogue) last() string { return strings.TrimSuffix(c.second, "]}") + c.third }

// breaks answers with the broken turn, any later request with a whole one.
func (c *dialogue) provider(t *testing.T) *provider {
	return newProvider(t, func(a *asked) {
		a.stream()
		a.chunks(c.broken...)
		a.rst()
	}, func(a *asked) {
		a.stream()
		a.chunks(c.whole...)
		a.end()
	})
}

func withGemini(p *provider) func(*Config) {
	return func(c *Config) { c.Upstreams = append(c.Upstreams, Upstream{Name: "gemini", URL: p.url()}) }
}

// ask sends a request and returns what the provider got and the client has.
func (c *dialogue) ask(t *testing.T, s *proxied, p *provider, body string, header ...string) (got, answer string) {
	t.Helper()
	answer, err := allOf(dial(t, s.addr).post(c.path, body, append(header, "Connection: close")...).response())
	if err != nil {
		t.Fatalf("the answer broke off: %v\n%s", err, answer)
	}
	return string(p.next().body), answer
}

const (
	ann = "Authorization: Bearer ann"
	bob = "Authorization: Bearer bob"
)

// After R2 the model is told of the calls that broke: by every later request, at the
// same place, in the same words, so that its provider's prompt cache holds; and by
// the same caller's requests only.
func TestLaterTurnsAreToldOfBrokenCalls(t *testing.T) {
	for _, c := range dialogues {
		t.Run(c.name, func(t *testing.T) {
			p := c.provider(t)
			s := start(t, p, withGemini(p))
			got, answer := c.ask(t, s, p, c.first, ann)
			if got != c.first {
				t.Fatalf("the first request was altered: %s", got)
			}
			if !strings.Contains(answer, "look") || strings.Contains(answer, "send") {
				t.Fatalf("R2 should have ended the turn with one call: %s", answer)
			}
			for _, tt := range []struct {
				name, body, want string
				header           []string
			}{
				{"the second", c.plain(c.second), c.noted(c.second), []string{ann}},
				{"the third", c.plain(c.last()), c.noted(c.last()), []string{ann}},
				{"the second once more", c.plain(c.second), c.noted(c.second), []string{ann}},
				{"another caller's", c.plain(c.second), c.plain(c.second), []string{bob}},
				{"nobody's", c.plain(c.second), c.plain(c.second), nil},
				{"the first again", c.first, c.first, []string{ann}},
			} {
				if got, _ := c.ask(t, s, p, tt.body, tt.header...); got != tt.want {
					t.Errorf("%s request reached the provider as\n%s\nwant\n%s", tt.name, got, tt.want)
				}
			}
			if n := s.Stats().Hinted; n != 3 {
				t.Errorf("%d hinted requests are counted, want 3", n)
			}
			cut := strings.TrimSuffix(c.noted(c.second), "]}")
			if !strings.HasPrefix(c.noted(c.last()), cut) {
				t.Error("the third request does not begin with the second's bytes")
			}
		})
	}
}

// A turn that nothing was cut out of leaves nothing to tell.
func TestNothingIsToldOfWholeTurns(t *testing.T) {
	c := dialogues[0]
	c.broken = c.broken[:2]
	p := c.provider(t)
	s := start(t, p)
	c.ask(t, s, p, c.first, ann)
	if got, _ := c.ask(t, s, p, c.plain(c.second), ann); got != c.plain(c.second) {
		t.Errorf("altered: %s", got)
	}
}

// counting is a store that counts how often it is asked back.
type counting struct {
	*view
	recalls chan int // how many keys each time
	block   chan struct{}
}

func (c counting) Recall(ctx context.Context, keys ...checkpoint.MemoKey) ([][]byte, error) {
	c.recalls <- len(keys)
	if c.block != nil {
		select {
		case <-c.block:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, ctx.Err())
		}
	}
	return c.view.Recall(ctx, keys...)
}

// A store is asked only by requests that could need it, and as long as it has nothing
// for the caller, one small question.
func TestLookingBackIsCheap(t *testing.T) {
	c := dialogues[0]
	p := newProvider(t, func(a *asked) {
		a.stream()
		a.chunks(c.whole...)
		a.end()
	})
	store := counting{view: &view{common: newCommon()}, recalls: make(chan int, 100)}
	s := start(t, p, func(cfg *Config) { cfg.Store = store })
	c.ask(t, s, p, c.first, ann)           // no results
	c.ask(t, s, p, c.plain(c.second))      // no caller
	c.ask(t, s, p, c.plain(c.second), ann) // could be
	close(store.recalls)
	var asked []int
	for n := range store.recalls {
		asked = append(asked, n)
	}
	if fmt.Sprint(asked) != "[1]" {
		t.Errorf("the store was asked for %v keys", asked)
	}
}

// A store that hangs costs a request the bound on looking back, and no more: it goes
// out as it came.
func TestLookingBackIsBounded(t *testing.T) {
	c := dialogues[0]
	p := newProvider(t, func(a *asked) {
		a.stream()
		a.chunks(c.whole...)
		a.end()
	})
	store := counting{view: &view{common: newCommon()}, recalls: make(chan int, 100), block: make(chan struct{})}
	s := start(t, p, func(cfg *Config) { cfg.Store = store })
	if got, _ := c.ask(t, s, p, c.plain(c.second), ann); got != c.plain(c.second) {
		t.Errorf("altered: %s", got)
	}
	if len(store.recalls) != 1 {
		t.Errorf("the store was asked %d times", len(store.recalls))
	}
}

// Memos are kept for a time.
func TestHintsExpire(t *testing.T) {
	c := dialogues[0]
	p := c.provider(t)
	s := start(t, p, func(cfg *Config) { cfg.Remember = time.Millisecond })
	c.ask(t, s, p, c.first, ann)
	eventually(t, "the hint is forgotten", func() bool {
		got, _ := c.ask(t, s, p, c.plain(c.second), ann)
		return got == c.plain(c.second)
	})
}

// What a later attempt asks is what the first one asked, put right: before, a turn
// that broke behind a history with marked reasoning was continued with the mark, which
// the provider refuses.
func TestContinuationsBuildOnWhatWasAsked(t *testing.T) {
	const (
		history = `{"role":"user","content":"Go"},{"role":"assistant","content":[`
		marked  = `{"type":"thinking","thinking":"Hm","signature":"ub1.drop"},`
		rest    = `{"type":"text","text":"A"},{"type":"tool_use","id":"c1","name":"look","input":{"at":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"seen"}`
		head    = `{"model":"claude-sonnet-4-5","max_tokens":100,"stream":true,"messages":[`
	)
	c := dialogues[1]
	p := newProvider(t, func(a *asked) {
		a.stream()
		a.chunks(c.broken...)
		a.rst()
	}, func(a *asked) {
		a.stream()
		a.chunks(ms(), mt(said))
		a.rst()
	}, func(a *asked) {
		a.stream()
		a.chunks(ms(), mt(left), me())
		a.end()
	})
	s := start(t, p)
	c.ask(t, s, p, c.first, ann)
	answer, err := allOf(dial(t, s.addr).post(c.path, head+history+marked+rest+`]}]}`, ann, "Connection: close").response())
	if err != nil || text(t, answer) != said+left {
		t.Fatalf("%v: %s", err, answer)
	}
	note := `,{"type":"text","text":"` + words + `"}`
	first, second := string(p.next().body), string(p.next().body)
	if want := head + history + rest + note + `]}]}`; first != want {
		t.Errorf("the first attempt was\n%s\nwant\n%s", first, want)
	}
	if want := `"messages":[` + history + rest + note + `]},`; !strings.Contains(second, want) {
		t.Errorf("the second attempt was\n%s\nwithout\n%s", second, want)
	}
}
