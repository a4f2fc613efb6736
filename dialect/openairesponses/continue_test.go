package openairesponses_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/dialect/openairesponses"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

const signed = `{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAAFINAL"}`

func reasoned(at int) *script {
	return begin("resp_A").item(at, `{"id":"rs_1","type":"reasoning","summary":[]}`).ends(at, signed)
}

func TestContinue(t *testing.T) {
	ws := `{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search"}}`
	search := func(s *script, at int) *script {
		return s.item(at, `{"id":"ws_1","type":"web_search_call","status":"in_progress"}`).ends(at, ws)
	}
	partial := `{"role":"assistant","content":"So it","phase":"final_answer"}`
	finished := `{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"Look."}],"role":"assistant","phase":"final_answer"}`
	for _, c := range []struct {
		name string
		said *script
		want string // input items behind the caller's
	}{
		{"text, its trailing space stripped (D6)", begin("resp_A").message(0, "msg_1", "So it \\n\n"), `{"role":"assistant","content":"So it \\n","phase":"final_answer"}`},
		{"reasoning without its own item goes (D9)", reasoned(0).message(1, "msg_1", "So it"), partial},
		{"two reasoning items, the message partial (D9)", search(reasoned(0), 1).item(2, `{"id":"rs_2","type":"reasoning","summary":[]}`).
			ends(2, `{"id":"rs_2","type":"reasoning","summary":[],"encrypted_content":"gAAA2"}`).message(3, "msg_1", "So it"), signed + "," + ws + "," + partial},
		{"reasoning and its finished message stay, byte for byte", reasoned(0).message(1, "msg_1", "Look.").closes(1, "msg_1", "Look.").message(2, "msg_2", "So it"), signed + "," + finished + "," + partial},
		{"a finished message without reasoning goes plain", begin("resp_A").message(0, "msg_1", "Look. ").closes(0, "msg_1", "Look. ").message(1, "msg_2", "So it"), `{"role":"assistant","content":"Look. ","phase":"final_answer"},` + partial},
		{"unfinished calls and blank texts go", begin("resp_A").message(0, "msg_1", "So it").closes(0, "msg_1", "So it").message(1, "msg_2", " ").closes(1, "msg_2", " ").call(2, "fc_1", `{"a`), partial},
		{"only what ran", search(begin("resp_A"), 0), ws},
		{"reasoning goes with the first item behind it only", search(search(reasoned(0), 1), 2), signed + "," + ws + "," + ws},
		{"reasoning whose own message broke off goes with no later item (D9)", search(reasoned(0).message(1, "msg_1", "So it"), 2), partial + "," + ws},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := dialecttest.Parse(t, d, []byte(`{"model":"gpt-5","stream":true,"background":true,"input":[{"role":"user","content":"Hi"}],"previous_response_id":"resp_0","max_output_tokens":100}`))
			body, err := d.Continue(req, fold(t, string(c.said.out)), dialect.Continuation{Manner: turn.Asked, Anchor: 40, Sentinel: "[[DONE]]", MaxTokens: 60})
			if err != nil {
				t.Fatal(err)
			}
			items, ok := strings.CutPrefix(string(jsonwalk.Get(body, "input")), `[{"role":"user","content":"Hi"},`)
			items, question, asked := strings.Cut(items, `,{"role":"user","content":"Your previous message`)
			if !ok || items != c.want || !asked || !strings.Contains(question, "[[DONE]]") {
				t.Errorf("input %s\nwant %s", jsonwalk.Get(body, "input"), c.want)
			}
			for member, want := range map[string]string{"store": "false", "background": "", "previous_response_id": `"resp_0"`, "max_output_tokens": "60", "stream": "true"} {
				if got := string(jsonwalk.Get(body, member)); got != want {
					t.Errorf("%s = %s, want %s", member, got, want)
				}
			}
		})
	}
}

func TestContinueRequestShapes(t *testing.T) {
	said := begin("resp_A").message(0, "msg_1", "So it")
	const open = `{"type":"message","id":"msg_unfinished","role":"assistant","status":"in_progress","content":[{"type":"output_text","text":"So it","annotations":[]}],"phase":"final_answer"}`
	for _, c := range []struct{ name, request, member, want string }{
		{"input that is text", `{"model":"m","input":"H\u00ed"}`, "input", `[{"role":"user","content":"H\u00ed"},` + open + `]`},
		{"input that is missing", `{"prompt":{"id":"p"}}`, "input", `[` + open + `]`},
		{"input that is empty", `{"model":"m","input":[]}`, "input", `[` + open + `]`},
		{"text that the caller left in progress is extended", `{"model":"m","input":[{"role":"user","content":"Q"},{"role":"assistant","status":"in_progress","content":[{"type":"output_text","text":"And: "}]}]}`, "input",
			`[{"role":"user","content":"Q"},{"role":"assistant","status":"in_progress","content":[{"type":"output_text","text":"And: So it"}]}]`},
		{"a schema goes, its neighbours stay", `{"model":"m","input":"x","text":{"format":{"type":"json_schema","schema":{}},"verbosity":"low"}}`, "text", `{"verbosity":"low"}`},
		{"a schema alone takes its member along", `{"model":"m","input":"x","text":{"format":{"type":"json_object"}}}`, "text", ``},
		{"the API's least output", `{"model":"m","input":"x","max_output_tokens":20}`, "max_output_tokens", `16`},
		{"another target's model", `{"model":"m","input":"x"}`, "model", `"other"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			req := dialecttest.Parse(t, d, []byte(c.request))
			body, err := d.Continue(req, fold(t, string(said.out)), dialect.Continuation{Manner: turn.Prefill, MaxTokens: 3, Model: "other"})
			if err != nil {
				t.Fatal(err)
			}
			if got := string(jsonwalk.Get(body, c.member)); got != c.want {
				t.Errorf("%s = %s\nwant %s", c.member, got, c.want)
			}
		})
	}
}

func TestContinueRefuses(t *testing.T) {
	for _, c := range []struct {
		name, request string
		said          *script
		manner        turn.Manner
		want          error
	}{
		{"nothing said", hello, begin("resp_A"), turn.Asked, openairesponses.ErrNothing},
		{"blank text", hello, begin("resp_A").message(0, "m", " \n"), turn.Asked, openairesponses.ErrNothing},
		{"a whole call", hello, begin("resp_A").call(0, "fc", `{"a":1}`), turn.Asked, openairesponses.ErrCall},
		{"a search that still runs", hello, begin("resp_A").message(0, "m", "x").item(1, `{"id":"ws","type":"web_search_call"}`), turn.Asked, openairesponses.ErrHostedTool},
		{"a container's call without its output", hello, begin("resp_A").item(0, `{"id":"s","type":"shell_call","call_id":"c","environment":{"type":"container_auto"}}`).ends(0, `{"id":"s","type":"shell_call","call_id":"c","environment":{"type":"container_auto"}}`), turn.Asked, openairesponses.ErrHostedTool},
		{"an item nobody knows, by its name", hello, begin("resp_A").message(0, "m", "x").item(1, `{"id":"x","type":"hologram_call"}`), turn.Asked, openairesponses.ErrUnknown},
		{"a conversation", `{"model":"m","input":"x","conversation":"conv_1"}`, begin("resp_A").message(0, "m", "x"), turn.Asked, openairesponses.ErrConversation},
		{"no manner", hello, begin("resp_A").message(0, "m", "x"), turn.NoManner, openairesponses.ErrManner},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := d.Continue(dialecttest.Parse(t, d, []byte(c.request)), fold(t, string(c.said.out)), dialect.Continuation{Manner: c.manner})
			if !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if c.want == openairesponses.ErrUnknown && !strings.Contains(err.Error(), "hologram_call") {
				t.Errorf("%v does not name it", err)
			}
		})
	}
}

// A forced hosted tool that has run must not be forced again.
func TestContinueReleasesASatisfiedChoice(t *testing.T) {
	req := dialecttest.Parse(t, d, []byte(`{"model":"m","input":"x","tool_choice":{"type":"web_search"}}`))
	s := begin("resp_A").item(0, `{"id":"ws","type":"web_search_call"}`).ends(0, `{"id":"ws","type":"web_search_call","status":"completed"}`).message(1, "m", "x")
	body, err := d.Continue(req, fold(t, string(s.out)), dialect.Continuation{Manner: turn.Asked})
	if err != nil || string(jsonwalk.Get(body, "tool_choice")) != `"auto"` {
		t.Errorf("%v: %s", err, body)
	}
}
