package relay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/openai/openai-go/v3"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/completions"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

var legacy = family{
	name:     "completions",
	d:        prompted{},
	fallback: `{"model":"m","stream":true,"stream_options":{"include_usage":true},"prompt":"go on"}`,
	folders:  []string{"openai-chat", "openai-compat-other"},
	half:     "data: {\"id\":\"cmpl-1\",\"choi",
	fault:    "data: {\"error\":{\"message\":\"EngineCore encountered an issue\",\"type\":\"InternalServerError\",\"param\":null,\"code\":500}}\n\n",
	marker:   "data: [DONE]\n\n",
	ping:     ": keep-alive\n\n",
	render:   relaytest.RenderCompletions,
	read:     readCompletions,
	// Every host goes on with the text it is given, also one that elsewhere must be
	// asked.
	targets: []target{
		targets[0],
		{"must-be-asked-elsewhere", dialect.Ability{Manners: []turn.Manner{turn.Asked}}, targets[0].seams},
	},
}

// prompted hands the provider model a continuation as the messages it reads, once
// its prompt has proved to be the client's own with the answer so far behind it.
type prompted struct{ completions.Dialect }

func (d prompted) Continue(r *dialect.Request, said *turn.Snapshot, c dialect.Continuation) ([]byte, error) {
	body, err := d.Dialect.Continue(r, said, c)
	if err != nil {
		return nil, err
	}
	was, err := promptOf(r.Body)
	if err != nil {
		return nil, err
	}
	now, err := promptOf(body)
	if err != nil {
		return nil, err
	}
	text, ok := strings.CutPrefix(now, was)
	if !ok || text != string(said.Prose()) {
		return nil, fmt.Errorf("400: the prompt %q became %q behind %q", was, now, said.Prose())
	}
	raw, err := json.Marshal([]map[string]string{{"role": "assistant", "content": text}})
	return jsonwalk.SetMember(nil, body, "messages", raw), err
}

func promptOf(body []byte) (string, error) {
	var q struct{ Prompt json.RawMessage }
	if err := json.Unmarshal(body, &q); err != nil {
		return "", err
	}
	var one string
	if json.Unmarshal(q.Prompt, &one) == nil {
		return one, nil
	}
	var list []string
	if err := json.Unmarshal(q.Prompt, &list); err != nil || len(list) != 1 {
		return "", fmt.Errorf("prompt %s: %v", q.Prompt, err)
	}
	return list[0], nil
}

var completionChunks heard[sdk.Completion]

// readCompletions reads a stream with openai-go, which accumulates nothing: the text
// is joined here, and one id, one finish and one marker are asked for.
func readCompletions(stream []byte) (message, error) {
	var m message
	id := ""
	err := eachOpenAI(&completionChunks, stream, func(c sdk.Completion) error {
		if id == "" {
			id = c.ID
		}
		if c.ID != id || c.Object != "text_completion" {
			return fmt.Errorf("a chunk of another message: %s", c.RawJSON())
		}
		for _, ch := range c.Choices {
			m.text += ch.Text
			if ch.FinishReason == "" {
				continue
			}
			if m.finish != "" {
				return fmt.Errorf("a second finish")
			}
			m.finish = string(ch.FinishReason)
		}
		return nil
	})
	switch n := bytes.Count(stream, []byte("data: [DONE]")); {
	case err != nil:
		return m, err
	case m.finish == "":
		return m, fmt.Errorf("no finish_reason")
	case n > 1:
		return m, fmt.Errorf("%d [DONE]", n)
	}
	if m.text != "" {
		m.order = "text"
	}
	return m, nil
}

func TestCutEverywhereCompletions(t *testing.T) {
	var recs []relaytest.Recording
	for _, r := range relaytest.Recordings(t, legacy.fallback, nil, legacy.folders...) {
		if bytes.Contains(r.Stream(), []byte(`"text_completion"`)) {
			recs = append(recs, r)
		}
	}
	if len(recs) != 2 {
		t.Fatalf("%d recordings", len(recs))
	}
	legacy.cutEverywhere(t, recs)
}
