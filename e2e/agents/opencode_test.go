package agents

import (
	"encoding/json"
	"fmt"
	"testing"
)

// opencode is opencode with an OpenAI-compatible provider.
var opencode = agent{
	name: "opencode", program: "opencode-linux-x64-baseline/bin/opencode", model: "gpt-5.5", answer: answer("1"),
	prepare: prepareOpencode, read: readOpencode,
	alone: []breakage{
		{name: "cut once in the text", script: inText, hits: 1},
		{name: "cut once in the tool call", script: inCall, hits: 1},
	},
	behind: []breakage{
		{name: "cut once in the text", script: inText, hits: 2},
		{name: "cut once in the tool call", script: inCall, hits: 1},
		{name: "reset once in the tool call", script: resetCall, hits: 1},
		{name: "cut once before the finish", script: atFinish, hits: 2},
		{name: "overloaded once in the text", script: overload, hits: 2},
	},
}

// prepareOpencode names unbroken as a provider. The title of a session is another
// conversation, which nobody waits for: there is none.
func prepareOpencode(_ *testing.T, e errand) (args, env []string) {
	settings := fmt.Sprintf(`{"model":"unbroken/%[1]s","autoupdate":false,"share":"disabled","permission":"allow","agent":{"title":{"disable":true}},
		"provider":{"unbroken":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":"%[2]s/v1","apiKey":"sk-none"},
		"models":{"%[1]s":{"limit":{"context":200000,"output":8000}}}}}}`, e.model, e.base)
	return []string{"run", "--pure", "--format", "json", task},
		[]string{"OPENCODE_CONFIG_CONTENT=" + settings, "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_AUTOUPDATE=1",
			"OPENCODE_DISABLE_LSP_DOWNLOAD=1", "OPENCODE_DISABLE_DEFAULT_PLUGINS=1"}
}

// opencodeLine is one line of what opencode run --format json writes.
type opencodeLine struct {
	Type string `json:"type"`
	Part struct {
		Text   string `json:"text"`
		Tool   string `json:"tool"`
		Reason string `json:"reason"`
		State  struct {
			Status string          `json:"status"`
			Input  json.RawMessage `json:"input"`
			Output string          `json:"output"`
		} `json:"state"`
		Tokens struct {
			Input  int `json:"input"`
			Output int `json:"output"`
		} `json:"tokens"`
	} `json:"part"`
	Error json.RawMessage `json:"error"`
}

// readOpencode reads what opencode wrote.
func readOpencode(out []byte) (t transcript, err error) {
	err = eachLine(out, func(l opencodeLine) {
		p := l.Part
		switch l.Type {
		case "text":
			t.final = p.Text
		case "error":
			t.final = string(l.Error)
		}
		t.in, t.out = t.in+p.Tokens.Input, t.out+p.Tokens.Output
		t.say("%s %s%s%s %s %s %s%s", l.Type, p.Text, p.Reason, p.Tool, p.State.Status, p.State.Input, p.State.Output, l.Error)
	})
	return t, err
}
