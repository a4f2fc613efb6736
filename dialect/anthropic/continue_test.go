package anthropic_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/anthropic"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/turn"
)

var (
	prefill = dialect.Continuation{Manner: turn.Prefill}
	asked   = dialect.Continuation{Manner: turn.Asked, Anchor: 40, Sentinel: "NOTHING-MISSING"}
)

const (
	plainRequest = `{"model":"m", "max_tokens":100 ,"system":[{"type":"text","text":"Be brief","cache_control":{"type":"ephemeral"}}],"messages":[ {"role":"user","content":[{"type":"text","text":"H\u00e9llo","cache_control":{"type":"ephemeral"}}]} ],"stop_sequences":["END"],"stream":true}`
	pauseRequest = `{"model":"m","max_tokens":4096,"thinking":{"type":"enabled","budget_tokens":2048},"messages":[{"role":"user","content":"Q"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"cw=="},{"type":"server_tool_use","id":"srv_0","name":"web_search","input":{}}]}]}`
	thinkRequest = `{"model":"m","max_tokens":4096,"messages":[{"role":"user","content":"Q"}],"stream":true,"thinking":{"type":"enabled","budget_tokens":2048}}`
)

func with(c dialect.Continuation, change func(*dialect.Continuation)) dialect.Continuation {
	change(&c)
	return c
}

func TestContinuationBodies(t *testing.T) {
	limit := func(n int64) func(*dialect.Continuation) { return func(c *dialect.Continuation) { c.MaxTokens = n } }
	signed := []string{beginThinking(0), thinks(0, "Hm \"so\""), signs(0, "c2ln+/="), stop(0)}
	redacted := begin(1, `{"type":"redacted_thinking","data":"b3BhcXVl"}`)
	search := []string{
		begin(0, `{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{}}`), args(0, `{"query":`), args(0, `"x"}`), stop(0),
		begin(1, `{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[]}`), stop(1),
	}
	tests := []struct {
		name    string
		request string
		said    []string
		c       dialect.Continuation
		want    []string // substrings of the body
		not     []string
	}{
		{name: "text is put behind the caller's messages, byte for byte", request: plainRequest,
			said: []string{beginText(0), says(0, "The \"quick\"\nbrown")}, c: prefill,
			want: []string{`"H\u00e9llo","cache_control":{"type":"ephemeral"}}]},{"role":"assistant","content":[{"type":"text","text":"The \"quick\"\nbrown"}]} ]`, `"max_tokens":100 ,`}},
		{name: "trailing white space stays behind (D6)", request: plainRequest,
			said: []string{beginText(0), says(0, "list:"), says(0, "\n\n \t\u00a0")}, c: prefill, want: []string{`"text":"list:"}]`}},
		{name: "white space inside an earlier block stays", request: plainRequest,
			said: []string{beginText(0), says(0, "one\n"), stop(0), beginText(1), says(1, "two\n")}, c: prefill,
			want: []string{`{"type":"text","text":"one\n"},{"type":"text","text":"two"}]`}},
		{name: "blank blocks are left out (D6)", request: plainRequest,
			said: []string{beginText(0), says(0, "one "), stop(0), beginText(1), says(1, " \n"), stop(1)}, c: prefill,
			want: []string{`"content":[{"type":"text","text":"one"}]`}},
		{name: "a blank block keeps its neighbours' words apart", request: plainRequest,
			said: []string{beginText(0), says(0, "one."), stop(0), beginText(1), says(1, " "), stop(1), beginText(2), says(2, "Two")}, c: prefill,
			want: []string{`{"type":"text","text":"one. "},{"type":"text","text":"Two"}]`}},
		{name: "half of a surrogate pair is left out (C6)", request: plainRequest,
			said: []string{beginText(0), `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi \ud83d"}}`}, c: prefill,
			want: []string{`"text":"hi"}]`}},
		{name: "a pair in two deltas is one character (C6)", request: plainRequest,
			said: []string{beginText(0), `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ud83d"}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\ude00"}}`}, c: prefill,
			want: []string{`"text":"\ud83d\ude00"}]`}},
		{name: "an unfinished call is dropped (R3)", request: plainRequest,
			said: []string{beginText(0), says(0, "Writing."), stop(0), beginTool(1, "toolu_1", "write"), args(1, `{"path":"/a","content":"lin`)}, c: prefill,
			want: []string{`"content":[{"type":"text","text":"Writing."}]`}, not: []string{"toolu_1", "lin"}},
		{name: "the caller's string prefill goes on", request: `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Q"},{"role":"assistant","content":"A:"}]}`,
			said: []string{beginText(0), says(0, " x "), stop(0), beginText(1), says(1, "y ")}, c: prefill,
			want: []string{`{"role":"assistant","content":"A: x y"}]`}},
		{name: "the caller's block prefill goes on, its cache mark kept", request: `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Q"},{"role":"assistant","content":[{"type":"text","text":"A:","cache_control":{"type":"ephemeral"}} ]}]}`,
			said: []string{beginText(0), says(0, " x"), stop(0), beginText(1), says(1, "y")}, c: prefill,
			want: []string{`[{"type":"text","text":"A: x","cache_control":{"type":"ephemeral"}},{"type":"text","text":"y"} ]`}},
		{name: "the caller's prefill goes on in an asked continuation", request: `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Q"},{"role":"assistant","content":"A:"}]}`,
			said: []string{beginText(0), says(0, " x")}, c: asked, want: []string{`{"role":"assistant","content":"A: x"},{"role":"user"`}},
		{name: "a string prefill before a hosted tool becomes blocks", request: `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Q"},{"role":"assistant","content":"A:"}]}`,
			said: search, c: prefill,
			want: []string{`"content":[{"type":"text","text":"A:"},{"type":"server_tool_use","id":"srv_1","name":"web_search","input":{"query":"x"}},{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[]}]`}},
		{name: "hosted calls keep their input and result", request: plainRequest, said: append(search, beginText(2), says(2, "Found")), c: prefill,
			want: []string{`"input":{"query":"x"}}`, `{"type":"web_search_tool_result","tool_use_id":"srv_1","content":[]},{"type":"text","text":"Found"}]`}},
		{name: "signed thinking is kept byte for byte when asked (D8)", request: thinkRequest,
			said: append(signed, redacted, stop(1), beginText(2), says(2, "So")), c: asked,
			want: []string{`[{"type":"thinking","thinking":"Hm \"so\"","signature":"c2ln+/="},{"type":"redacted_thinking","data":"b3BhcXVl"},{"type":"text","text":"So"}]`, `"thinking":{"type":"enabled","budget_tokens":2048}`}},
		{name: "thinking is off, and out of the last message, for a prefill", request: thinkRequest,
			said: append(signed, redacted, stop(1), beginText(2), says(2, "So")), c: prefill,
			want: []string{`"thinking":{"type":"disabled"}`, `"content":[{"type":"text","text":"So"}]`}, not: []string{"c2ln", "b3BhcXVl"}},
		{name: "the resumption of a pause keeps its thinking, as recorded", request: pauseRequest,
			said: []string{begin(0, `{"type":"web_search_tool_result","tool_use_id":"srv_0","content":[]}`), stop(0), beginText(1), says(1, "So ")}, c: prefill,
			want: []string{`"budget_tokens":2048`, `"name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"srv_0","content":[]},{"type":"text","text":"So"}]}]`}},
		{name: "context edits that need thinking go with it", request: `{"model":"m","max_tokens":4096,"messages":[{"role":"user","content":"Q"}],"thinking":{"type":"adaptive"},"context_management":{"edits":[{"type":"clear_thinking_20251015"},{"type":"clear_tool_uses_20250919"}]}}`,
			said: []string{beginText(0), says(0, "So")}, c: prefill, want: []string{`{"edits":[{"type":"clear_tool_uses_20250919"}]}`}},
		{name: "thinking of another model is left out", request: thinkRequest, said: append(signed, beginText(1), says(1, "So")),
			c: with(asked, func(c *dialect.Continuation) { c.Model = "other" }), want: []string{`"model":"other"`, `"content":[{"type":"text","text":"So"}]`}},
		{name: "marked thinking is left out", request: thinkRequest,
			said: []string{beginThinking(0), thinks(0, "old"), signs(0, turn.DropMark), stop(0), beginText(1), says(1, "So")}, c: asked, not: []string{"old"}},
		{name: "a signature that was cut stays private (D7)", request: thinkRequest,
			said: []string{beginText(0), says(0, "So"), stop(0), beginThinking(1), thinks(1, "more"), signs(1, "abc")}, c: asked, not: []string{"abc", "more"}},
		{name: "trailing thinking does not end the message", request: thinkRequest,
			said: []string{beginText(0), says(0, "So "), stop(0), beginThinking(1), thinks(1, "more"), signs(1, "abc"), stop(1)}, c: asked,
			want: []string{`"content":[{"type":"text","text":"So"}]`}},
		{name: "the budget stays below what is left", request: thinkRequest, said: []string{beginText(0), says(0, "So")}, c: with(asked, limit(2048)),
			want: []string{`"max_tokens":2048`, `"budget_tokens":1024`}},
		{name: "the budget is lowered to half of what is left", request: thinkRequest, said: []string{beginText(0), says(0, "So")},
			c: with(asked, limit(2047)), want: []string{`"budget_tokens":1024`}},
		{name: "thinking is off where its minimum does not fit", request: thinkRequest, said: []string{beginText(0), says(0, "So")},
			c: with(asked, limit(1024)), want: []string{`"max_tokens":1024`, `"thinking":{"type":"disabled"}`}},
		{name: "a limit is added where the caller had none", request: `{"model":"m","messages":[{"role":"user","content":"Q"}]}`,
			said: []string{beginText(0), says(0, "So")}, c: with(prefill, limit(7)), want: []string{`,"max_tokens":7}`}},
		{name: "the schema is dropped", request: `{"model":"m","max_tokens":9,"output_format":{"type":"json_schema","schema":{"type":"object"}},"messages":[{"role":"user","content":"Q"}]}`,
			said: []string{beginText(0), says(0, `{"a":`)}, c: prefill, want: []string{`{\"a\":`}, not: []string{"output_format"}},
		{name: "the schema is dropped from the output config, effort stays", request: `{"model":"m","max_tokens":9,"output_config":{"effort":"low","format":{"type":"json_schema","schema":{}}},"messages":[{"role":"user","content":"Q"}]}`,
			said: []string{beginText(0), says(0, `{"a":`)}, c: prefill, want: []string{`"output_config":{"effort":"low"}`}},
		{name: "an output config of nothing but the schema goes", request: `{"model":"m","max_tokens":9,"output_config":{"format":{"type":"json_schema","schema":{}}},"messages":[{"role":"user","content":"Q"}]}`,
			said: []string{beginText(0), says(0, `{"a":`)}, c: prefill, not: []string{"output_config"}},
		{name: "a forced hosted tool that was called is released", request: `{"model":"m","max_tokens":9,"tool_choice":{"type":"tool","name":"web_search","disable_parallel_tool_use":true},"messages":[{"role":"user","content":"Q"}]}`,
			said: append(search, beginText(2), says(2, "Found")), c: prefill, want: []string{`"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`}},
		{name: "a forced tool that was not called stays forced", request: `{"model":"m","max_tokens":9,"tool_choice":{"type":"any"},"messages":[{"role":"user","content":"Q"}]}`,
			said: []string{beginText(0), says(0, "So")}, c: prefill, want: []string{`"tool_choice":{"type":"any"}`}},
		{name: "the question quotes the end and names the sentinel", request: plainRequest,
			said: []string{beginText(0), says(0, "A long beginning that nobody needs to see again. "), says(0, "It ends “here”, in the middle of\n")}, c: asked,
			want: []string{`<end>`, `It ends “here”, in the middle of</end>`, `NOTHING-MISSING.`}, not: []string{"in the middle of\\n"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req := parse(t, tt.request)
			body, err := d.Continue(req, said(t, tt.said...), tt.c)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range strict(req, tt.c, body) {
				t.Error(f)
			}
			for _, w := range tt.want {
				if !strings.Contains(string(body), w) {
					t.Errorf("%s is not in", w)
				}
			}
			for _, n := range tt.not {
				if strings.Contains(string(body), n) {
					t.Errorf("%s is in", n)
				}
			}
			if t.Failed() {
				t.Logf("%s", body)
			}
		})
	}
}

func TestContinuationRefusals(t *testing.T) {
	for _, tt := range []struct {
		name string
		said []string
		c    dialect.Continuation
		want error
	}{
		{"nothing was said", nil, prefill, anthropic.ErrNothing},
		{"white space is nothing", []string{beginText(0), says(0, " \n")}, asked, anthropic.ErrNothing},
		{"thinking alone is nothing", []string{beginThinking(0), thinks(0, "x"), signs(0, "y"), stop(0)}, asked, anthropic.ErrNothing},
		{"a complete call wants its result", []string{beginText(0), says(0, "x"), stop(0), beginTool(1, "i", "n"), args(1, `{"a":1}`)}, prefill, anthropic.ErrCall},
		{"a hosted tool without a result (D23)", []string{beginText(0), says(0, "x"), stop(0), begin(1, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`), args(1, `{}`), stop(1)}, prefill, anthropic.ErrHostedTool},
		{"a block of unknown type", []string{begin(0, `{"type":"compaction","content":"x"}`), stop(0), beginText(1), says(1, "x")}, prefill, anthropic.ErrUnknown},
		{"resume is not of this dialect", []string{beginText(0), says(0, "x")}, dialect.Continuation{Manner: turn.Provider}, anthropic.ErrManner},
		{"text that is no JSON string", []string{beginText(0), `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"x"}}`}, prefill, anthropic.ErrBody},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := said(t, tt.said...)
			if tt.want == anthropic.ErrBody {
				s.Blocks[0].Text = append(s.Blocks[0].Text, `\q.`...)
			}
			body, err := d.Continue(parse(t, plainRequest), s, tt.c)
			if !errors.Is(err, tt.want) || body != nil {
				t.Errorf("err = %v, body = %s", err, body)
			}
		})
	}
	short := with(prefill, func(c *dialect.Continuation) { c.MaxTokens = 1000 })
	if _, err := d.Continue(parse(t, pauseRequest), said(t, beginText(0), says(0, "x")), short); !errors.Is(err, anthropic.ErrBudget) {
		t.Errorf("no room for thinking that must stay: %v", err)
	}
	if _, err := d.Continue(parse(t, `{"model":"m","messages":[]}`), said(t, beginText(0), says(0, "x")), prefill); !errors.Is(err, anthropic.ErrBody) {
		t.Errorf("no messages: %v", err)
	}
}

// TestRecordingsContinueEverywhere cuts every recording behind every event (the huge ones behind some). Each cut either has a continuation without a
// fault or a named reason why there is none.
func TestRecordingsContinueEverywhere(t *testing.T) {
	reasons := []error{anthropic.ErrNothing, anthropic.ErrCall, anthropic.ErrHostedTool, anthropic.ErrUnknown}
	built := 0
	for _, r := range recordings(t) {
		units := dialecttest.Units(r.stream)
		for _, request := range []string{plainRequest, thinkRequest} {
			req := parse(t, request)
			dec, s := d.NewDecoder(req), new(turn.Snapshot)
			for k, e := range units {
				ds, err := dec.Decode(nil, e)
				if err != nil {
					break
				}
				for _, x := range ds {
					if x.Kind == turn.Finish {
						continue // a cut turn has none
					}
					if err := s.Fold(x); err != nil {
						t.Fatal(err)
					}
				}
				if len(r.stream) > 64<<10 && k%16 != 0 {
					continue
				}
				for _, c := range []dialect.Continuation{prefill, asked} {
					body, err := d.Continue(req, s, c)
					switch {
					case err == nil:
						built++
						for _, f := range strict(req, c, body) {
							t.Errorf("%s cut at %d, %s: %s", r.name, k, c.Manner, f)
						}
					case !isOneOf(err, reasons):
						t.Errorf("%s cut at %d: %v", r.name, k, err)
					}
				}
			}
		}
	}
	if built == 0 {
		t.Error("no continuation was built")
	}
}

func isOneOf(err error, all []error) bool {
	for _, e := range all {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// TestAnchorIsTheTail: the seam compares the answer with what the client has, so the quoted end is exactly its tail.
func TestAnchorIsTheTail(t *testing.T) {
	text := strings.Repeat("日本語テキスト ", 20) + "Ende"
	s := said(t, beginText(0), says(0, text))
	for n := range 60 {
		body, err := d.Continue(parse(t, plainRequest), s, dialect.Continuation{Manner: turn.Asked, Anchor: n})
		if err != nil {
			t.Fatal(err)
		}
		var b struct{ Messages []message }
		if err := json.Unmarshal(body, &b); err != nil {
			t.Fatal(err)
		}
		q := b.Messages[len(b.Messages)-1].blocks()[0].Text
		_, quoted, found := strings.Cut(q, "<end>")
		quoted, _, _ = strings.Cut(quoted, "</end>")
		if found != (n > 0) || !strings.HasSuffix(text, quoted) || len(quoted) > n || n-len(quoted) > 4 {
			t.Errorf("%d: quotes %q", n, quoted)
		}
	}
}

func TestPrefillCostsThinking(t *testing.T) {
	for request, want := range map[string]bool{plainRequest: false, thinkRequest: true, pauseRequest: false} {
		if got := anthropic.PrefillCostsThinking(parse(t, request)); got != want {
			t.Errorf("%v: %s", got, request)
		}
	}
}
