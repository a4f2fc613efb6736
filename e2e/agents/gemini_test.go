package agents

import (
	"encoding/json"
	"path/filepath"
	"testing"
)

// gemini is Gemini CLI. The calls of its models come whole: there is no place
// inside their arguments but in the middle of their event.
var gemini = agent{
	name: "Gemini CLI", program: ".bin/gemini", model: "gemini-2.5-pro",
	answer:  answer(`<untrusted_context>\nOutput: 1\nProcess Group PGID: …\n</untrusted_context>`),
	prepare: prepareGemini, read: readGemini,
	alone: []breakage{
		{name: "cut once in the text", script: inText, hits: 1},
		{name: "cut politely once in the text", script: "every stream: polite in text 4 once", hits: 1},
		{name: "cut once in the tool call", script: inWhole, hits: 1},
	},
	behind: []breakage{
		{name: "cut once in the text", script: inText, hits: 2},
		{name: "cut politely once in the text", script: "every stream: polite in text 4 once", hits: 2},
		{name: "cut once in the tool call", script: inWhole, hits: 1},
		{name: "cut once before the finish", script: atFinish, hits: 2},
		{name: "overloaded once in the text", script: overload, hits: 2},
		{name: "silent once in the text", script: silence, hits: 2},
	},
}

const inWhole = "every stream: half inside tool 1 once"

// prepareGemini says in a file what the program would ask its user.
func prepareGemini(t *testing.T, e errand) (args, env []string) {
	write(t, `{"security":{"auth":{"selectedType":"gemini-api-key"}},"privacy":{"usageStatisticsEnabled":false},
		"general":{"disableAutoUpdate":true,"enableAutoUpdate":false},"telemetry":{"enabled":false}}`, e.home, ".gemini", "settings.json")
	return []string{"-p", task, "-m", e.model, "--yolo", "--skip-trust", "--output-format", "stream-json"},
		[]string{"GEMINI_CLI_HOME=" + e.home, "GEMINI_API_KEY=none", "GOOGLE_GEMINI_BASE_URL=" + e.base,
			"XDG_CONFIG_HOME=" + filepath.Join(e.home, "config")}
}

// geminiLine is one line of what gemini --output-format stream-json writes.
type geminiLine struct {
	Type       string          `json:"type"`
	Role       string          `json:"role"`
	Content    string          `json:"content"`
	Delta      bool            `json:"delta"`
	Tool       string          `json:"tool_name"`
	Parameters json.RawMessage `json:"parameters"`
	Status     string          `json:"status"`
	Output     string          `json:"output"`
	Message    string          `json:"message"`
	Error      struct {
		Message string `json:"message"`
	} `json:"error"`
	Stats struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
	} `json:"stats"`
}

// readGemini reads what Gemini CLI wrote.
func readGemini(out []byte) (t transcript, err error) {
	streaming, text := false, ""
	err = eachLine(out, func(l geminiLine) {
		if l.Delta && streaming {
			text += l.Content
			t.seen[len(t.seen)-1] = "answer " + mask(text)
			t.final = mask(text)
			return
		}
		if streaming = l.Delta; streaming {
			text = l.Content
			t.say("answer %s", text)
			return
		}
		if l.Error.Message != "" {
			t.final = l.Error.Message
		}
		t.in, t.out = t.in+l.Stats.Input, t.out+l.Stats.Output
		t.say("%s %s %s%s %s%s %s%s%s", l.Type, l.Role, l.Tool, l.Parameters, l.Status, mask(l.Output), l.Content, l.Message, l.Error.Message)
	})
	return t, err
}
