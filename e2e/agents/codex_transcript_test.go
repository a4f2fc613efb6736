package agents

import (
	"encoding/json"
	"strings"
)

// codexLine is one line of what codex exec --json writes.
type codexLine struct {
	Type    string         `json:"type"`
	Item    map[string]any `json:"item"`
	Message string         `json:"message"`
	Error   struct {
		Message string `json:"message"`
	} `json:"error"`
	Usage struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
	} `json:"usage"`
}

// readCodex reads what Codex wrote. Its items are numbered: the numbers are left
// out, since reasoning that began anew has one of its own.
func readCodex(out []byte) (t transcript, err error) {
	err = eachLine(out, func(l codexLine) {
		switch {
		case l.Item != nil:
			t.codexItem(l)
			return
		case l.Type == "error" && strings.HasPrefix(l.Message, "Reconnecting"):
			t.retries++
		case l.Type == "turn.failed":
			t.final = l.Error.Message
		case l.Type == "turn.completed":
			t.in, t.out = t.in+l.Usage.Input, t.out+l.Usage.Output
		}
		t.say("%s %s%s", l.Type, l.Message, l.Error.Message)
	})
	return t, err
}

func (t *transcript) codexItem(l codexLine) {
	kind, _ := l.Item["type"].(string)
	delete(l.Item, "id")
	if kind == "agent_message" {
		text, _ := l.Item["text"].(string)
		t.final = mask(text)
	}
	if kind == "reasoning" {
		t.say("%s%s %v", thought, l.Type, l.Item["text"])
		return
	}
	raw, _ := json.Marshal(l.Item) // of JSON
	t.say("%s %s", l.Type, mask(string(raw)))
}
