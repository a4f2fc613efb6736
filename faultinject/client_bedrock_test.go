package faultinject

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/eventstream"
)

const (
	bedrockClaude = "us.anthropic.claude-sonnet-4-5-20250929-v1:0" // takes a prefill
	bedrockLater  = "us.anthropic.claude-opus-4-8-v1"              // does not
)

func converseAt(model string) string { return "/model/" + model + "/converse-stream" }
func invokeAt(model string) string   { return "/model/" + model + "/invoke-with-response-stream" }

// converseBody is a Converse request with the given messages and members.
func converseBody(messages []string, members ...string) string {
	return "{" + strings.Join(append([]string{`"messages":[` + strings.Join(messages, ",") + `]`}, members...), ",") + "}"
}

// turnOf is a message of Converse with the given blocks.
func turnOf(role string, blocks ...string) string {
	return `{"role":"` + role + `","content":[` + strings.Join(blocks, ",") + `]}`
}

func saying(role, text string) string { return turnOf(role, `{"text":`+quote(text)+`}`) }

// invokeBody is an InvokeModel request with the given messages and members.
func invokeBody(messages []string, members ...string) string {
	return "{" + strings.Join(append([]string{`"anthropic_version":"bedrock-2023-05-31","max_tokens":4096,"messages":[` + strings.Join(messages, ",") + `]`}, members...), ",") + "}"
}

// framesOf reads the whole frames of a body, and what is left of it.
func framesOf(body string) (frames []eventstream.Frame, rest string) {
	for {
		f, size, err := eventstream.Read([]byte(body), 0)
		if err != nil || size == 0 || size > len(body) {
			return frames, body
		}
		frames, body = append(frames, f), body[size:]
	}
}

// inside is what the chunk of a frame holds, or the frame's payload.
func inside(f eventstream.Frame) string {
	var c struct{ Bytes []byte }
	if string(f.Name) == "chunk" && json.Unmarshal(f.Payload, &c) == nil {
		return string(c.Bytes)
	}
	return string(f.Payload)
}

// unframed is a body with its frames opened; any other is as it was.
func unframed(body string) string {
	frames, rest := framesOf(body)
	var b strings.Builder
	for _, f := range frames {
		b.WriteString(string(f.Kind) + " " + string(f.Name) + " " + string(f.Header(":error-message")) + inside(f) + "\n")
	}
	return b.String() + rest
}

// wholeEvents counts the events of a body.
func wholeEvents(d Dialect, body string) int {
	if d.framing(Options{}) == FrameBinary {
		frames, _ := framesOf(body)
		return len(frames)
	}
	return strings.Count(strings.ReplaceAll(body, "\r\n", "\n"), "\n\n")
}

// hearFrames folds a stream of frames.
func hearFrames(t *testing.T, d Dialect, stream string) (h heard) {
	t.Helper()
	frames, rest := framesOf(stream)
	if rest != "" {
		t.Errorf("%d bytes are no frame", len(rest))
	}
	for _, f := range frames {
		if d == Invoke {
			h.messages(t, inside(f))
		} else {
			h.converse(t, string(f.Name), f.Payload)
		}
	}
	return h
}

func (h *heard) converse(t *testing.T, name string, payload []byte) {
	t.Helper()
	var e struct {
		Start struct{ ToolUse struct{ Name string } }
		Delta struct {
			Text             string
			ToolUse          *struct{ Input string }
			ReasoningContent struct{ Text string }
		}
		StopReason string
		Usage      struct{ TotalTokens int }
	}
	if err := json.Unmarshal(payload, &e); err != nil {
		t.Fatalf("%s %s: %v", name, payload, err)
	}
	switch name {
	case "messageStart":
		h.starts++
	case "contentBlockStart":
		h.calls = append(h.calls, e.Start.ToolUse.Name+" ")
	case "messageStop":
		h.finish = e.StopReason
	case "metadata":
		h.ended = e.Usage.TotalTokens > 0
	}
	h.text += e.Delta.Text
	h.thinking += e.Delta.ReasoningContent.Text
	if e.Delta.ToolUse != nil {
		h.calls[len(h.calls)-1] += e.Delta.ToolUse.Input
	}
}

// The frames are those of the format, byte for byte: reading them with the
// official library is package eventstream's test, against the same reader.
func TestFramesSayTheAnswer(t *testing.T) {
	for _, scenario := range ScenarioNames() {
		a, err := Scenario(scenario, Prompt{Tools: []Tool{{Name: "Bash"}}}, Config{LongTokens: 50})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range []Dialect{Converse, Invoke} {
			h := hearFrames(t, d, string(bytes.Join(Raws(Render(d, a, Options{Seed: 3})), nil)))
			thought := ""
			for _, k := range a.Blocks {
				if k.Kind == ThinkingBlock {
					thought += k.Text
				}
			}
			if h.text != spoken(a) || h.thinking != thought || h.starts != 1 || h.finish == "" || !h.ended || len(h.calls) != len(a.without(CustomBlock).Calls()) {
				t.Errorf("%s/%s: %+v", scenario, d, h)
			}
			for i, k := range a.without(CustomBlock).Calls() {
				if h.calls[i] != k.Name+" "+k.Args {
					t.Errorf("%s/%s: call %q, want %s %s", scenario, d, h.calls[i], k.Name, k.Args)
				}
			}
		}
	}
}
