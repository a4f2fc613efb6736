package bedrock

import (
	"errors"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/turn"
)

const (
	ask      = `{"messages":[{"role":"user","content":[{"text":"Go"}]}],"inferenceConfig":{"maxTokens":4000,"temperature":0.5}}`
	prefills = `{"messages":[{"role":"user","content":[{"text":"Go"}]},{"role":"assistant","content":[{"text":"Well, "}]}]}`
	thinks   = `{"messages":[{"role":"user","content":[{"text":"Go"}]}],"inferenceConfig":{"maxTokens":4000},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":2000},"top_k":5}}`
	schemed  = `{"messages":[{"role":"user","content":[{"text":"Go"}]}],"outputConfig":{"textFormat":{"type":"json_schema","structure":{"jsonSchema":{"schema":"{\"type\":\"object\"}"}}},"effort":"low"}}`
)

func prose(text string) turn.Block { return turn.Block{Kind: turn.Prose, Text: []byte(text)} }

func thought(text, signature string) turn.Block {
	return turn.Block{Kind: turn.Reasoning, Text: []byte(text), Signature: []byte(signature), Closed: true}
}

func TestContinue(t *testing.T) {
	redacted := turn.Block{Kind: turn.Redacted, Raw: []byte(`{"reasoningContent":{"redactedContent":"ZQ=="}}`), Closed: true}
	prefill := dialect.Continuation{Manner: turn.Prefill}
	asked := dialect.Continuation{Manner: turn.Asked, Anchor: 40, Sentinel: "DONE"}
	for _, c := range []struct {
		name, request string
		said          []turn.Block
		how           dialect.Continuation
		want          string // what the body ends in, behind the messages that were there; or what it holds
		err           error
	}{
		{"a prefill behind the user's turn", ask, []turn.Block{prose(`One \"two\" \n `)}, prefill,
			`[{"role":"user","content":[{"text":"Go"}]},{"role":"assistant","content":[{"text":"One \"two\""}]}],"inferenceConfig":{"maxTokens":4000,"temperature":0.5}}`, nil},
		{"the caller's own prefill goes on", prefills, []turn.Block{prose("two")}, prefill,
			`{"role":"assistant","content":[{"text":"Well, two"}]}]}`, nil},
		{"an asked continuation quotes the tail", ask, []turn.Block{prose("One two")}, asked,
			"→One two←", nil},
		{"asked behind the caller's own prefill", prefills, []turn.Block{prose("two")}, asked,
			"→Well, two←", nil},
		{"two texts stay two words apart", ask, []turn.Block{prose("One"), prose("  "), prose("two")}, prefill,
			`"content":[{"text":"One  two"}]`, nil},
		{"half a character is left out", ask, []turn.Block{prose(`One\ud83d`)}, prefill,
			`"content":[{"text":"One"}]`, nil},
		{"an unfinished call is left out", ask, []turn.Block{prose("One"), {Kind: turn.Call, Name: "f", Text: []byte(`{\"a`)}}, prefill,
			`"content":[{"text":"One"}]`, nil},
		{"signed reasoning is kept where it is asked", thinks, []turn.Block{thought("hm", "c2ln"), redacted, prose("One"), thought("more", "c2ln")}, asked,
			`"content":[{"reasoningContent":{"reasoningText":{"text":"hm","signature":"c2ln"}}},{"reasoningContent":{"redactedContent":"ZQ=="}},{"text":"One"}]},{"role":"user"`, nil},
		{"a prefill costs the thinking", thinks, []turn.Block{thought("hm", "c2ln"), prose("One")}, prefill,
			`"content":[{"text":"One"}]}],"inferenceConfig":{"maxTokens":4000},"additionalModelRequestFields":{"thinking":{"type":"disabled"},"top_k":5}}`, nil},
		{"marked reasoning is not sent back", thinks, []turn.Block{thought("hm", turn.DropMark), prose("One")}, asked,
			`"content":[{"text":"One"}]`, nil},
		{"what is left of the tokens", thinks, []turn.Block{prose("One")}, dialect.Continuation{Manner: turn.Asked, MaxTokens: 1500},
			`"inferenceConfig":{"maxTokens":1500},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":1024},"top_k":5}}`, nil},
		{"too few of them to think", thinks, []turn.Block{prose("One")}, dialect.Continuation{Manner: turn.Asked, MaxTokens: 900},
			`"inferenceConfig":{"maxTokens":900},"additionalModelRequestFields":{"thinking":{"type":"disabled"},"top_k":5}}`, nil},
		{"a schema would start over", schemed, []turn.Block{prose(`{\"a\":`)}, prefill,
			`"content":[{"text":"{\"a\":"}]}],"outputConfig":{"effort":"low"}}`, nil},
		{"nothing but white space", ask, []turn.Block{prose(" \\n")}, prefill, "", ErrNothing},
		{"a complete call is to be answered", ask, []turn.Block{{Kind: turn.Call, Name: "f", Closed: true}}, prefill, "", ErrCall},
		{"a tool that ran at the provider", ask, []turn.Block{{Kind: turn.Hosted, Name: "nova_grounding", Closed: true}, prose("One")}, prefill, "", ErrHosted},
		{"a picture", ask, []turn.Block{prose("One"), {Kind: turn.Unknown, Name: "image"}}, prefill, "", ErrUnknown},
		{"no such manner", ask, []turn.Block{prose("One")}, dialect.Continuation{Manner: turn.Provider}, "", ErrManner},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Converse{}.Parse([]byte(c.request))
			if err != nil {
				t.Fatal(err)
			}
			body, err := Converse{}.Continue(r, &turn.Snapshot{Blocks: c.said}, c.how)
			if !errors.Is(err, c.err) || !strings.Contains(string(body), c.want) {
				t.Errorf("got %s, %v\nwant %s, %v", body, err, c.want, c.err)
			}
			if err == nil && !strings.HasPrefix(string(body), `{"messages":[{"role":"user","content":[{"text":"Go"}]}`) {
				t.Errorf("the prompt changed: %s", body)
			}
		})
	}
}

func TestRepairTakesMarkedReasoningOut(t *testing.T) {
	marked := `{"reasoningContent":{"reasoningText":{"text":"hm","signature":"c2ln` + turn.DropMark + `"}}}`
	for _, c := range []struct{ name, body, want string }{
		{"in front of text", `{"messages":[{"role":"assistant","content":[` + marked + `,{"text":"One"}]}]}`, `{"messages":[{"role":"assistant","content":[{"text":"One"}]}]}`},
		{"alone", `{"messages":[{"role":"user","content":[]},{"role":"assistant","content":[` + marked + `]},{"role":"user","content":[]}]}`, `{"messages":[{"role":"user","content":[]},{"role":"user","content":[]}]}`},
		{"the user speaks of it", `{"messages":[{"role":"user","content":[{"text":"` + turn.DropMark + `"}]}]}`, ""},
		{"nothing to repair", ask, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Converse{}.Repair([]byte(c.body))
			if c.want == "" {
				c.want = c.body
			}
			if string(got) != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}
