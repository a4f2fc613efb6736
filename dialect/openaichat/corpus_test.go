package openaichat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

var families = []string{"azure", "deepseek", "gpustack-vllm", "groq", "mistral", "ollama", "openai-chat", "openai-compat-other", "openrouter", "perplexity", "xai"}

// recordings returns the recorded chat streams. They are not part of the
// repository; UNBROKEN_CORPUS names their directory.
func recordings(t *testing.T) map[string][]byte {
	t.Helper()
	root := os.Getenv("UNBROKEN_CORPUS")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "corpus")
	}
	if _, err := os.Stat(root); err != nil {
		t.Skip("no corpus of recorded streams: set UNBROKEN_CORPUS")
	}
	out := map[string][]byte{}
	for _, family := range families {
		files, err := filepath.Glob(filepath.Join(root, family, "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			switch name := family + "/" + filepath.Base(f); {
			case strings.HasSuffix(f, ".sse"):
				out[name] = b
			case strings.HasSuffix(f, ".chunks.txt"):
				var stream []byte
				for line := range bytes.Lines(b) {
					stream = sse.Append(stream, "", bytes.TrimSpace(line))
				}
				out[name] = stream
			}
		}
	}
	return out
}

// plainTurn is a turn as encoding/json and the simplest of accumulators see it.
type plainTurn struct {
	content, reasoning, refusal string
	calls                       []plainCall
	finish                      string
	in, out                     int64
	errors                      int
}

type plainCall struct{ id, name, args string }

type plainChunk struct {
	Choices []struct {
		Delta struct {
			Content          any    `json:"content"`
			Refusal          string `json:"refusal"`
			ReasoningContent string `json:"reasoning_content"`
			Reasoning        string `json:"reasoning"`
			Details          []struct {
				Text    string `json:"text"`
				Summary string `json:"summary"`
			} `json:"reasoning_details"`
			ToolCalls []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage *plainUsage `json:"usage"`
	Groq  struct {
		Usage *plainUsage `json:"usage"`
	} `json:"x_groq"`
	Error any `json:"error"`
}

type plainUsage struct {
	In  int64 `json:"prompt_tokens"`
	Out int64 `json:"completion_tokens"`
}

func readPlain(t *testing.T, stream []byte) plainTurn {
	t.Helper()
	var p plainTurn
	for _, line := range strings.Split(string(stream), "\n") {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data:")
		if data = strings.TrimSpace(data); !ok || data == "[DONE]" || data == "" {
			continue
		}
		var c plainChunk
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		p.add(&c)
	}
	return p
}

func (p *plainTurn) add(c *plainChunk) {
	for _, u := range []*plainUsage{c.Groq.Usage, c.Usage} {
		if u != nil {
			p.in, p.out = u.In, u.Out
		}
	}
	if c.Error != nil {
		p.errors++
	}
	for _, ch := range c.Choices {
		d := &ch.Delta
		switch content := d.Content.(type) {
		case string:
			p.content += content
		case []any:
			for _, x := range content {
				for _, inner := range x.(map[string]any)["thinking"].([]any) {
					p.reasoning += inner.(map[string]any)["text"].(string)
				}
			}
		}
		p.refusal += d.Refusal
		switch {
		case d.ReasoningContent != "":
			p.reasoning += d.ReasoningContent
		case d.Reasoning != "":
			p.reasoning += d.Reasoning
		default:
			for _, x := range d.Details {
				p.reasoning += x.Text + x.Summary
			}
		}
		for _, tc := range d.ToolCalls {
			if tc.ID != "" && (len(p.calls) == 0 || p.calls[len(p.calls)-1].id != tc.ID) {
				p.calls = append(p.calls, plainCall{id: tc.ID, name: tc.Function.Name})
			}
			p.calls[len(p.calls)-1].args += tc.Function.Arguments
		}
		if p.finish == "" {
			p.finish = ch.FinishReason
		}
	}
}

// plainOf is the same view of a snapshot.
func plainOf(s *turn.Snapshot) plainTurn {
	p := plainTurn{finish: s.End().Reason, in: s.Usage.Input, out: s.Usage.Output}
	for i := range s.Blocks {
		switch b := &s.Blocks[i]; b.Kind {
		case turn.Prose:
			p.content += string(b.Plain())
		case turn.Reasoning:
			p.reasoning += string(b.Plain())
		case turn.Refusal:
			p.refusal += string(b.Plain())
		case turn.Call:
			p.calls = append(p.calls, plainCall{b.ID, b.Name, string(b.Plain())})
		}
	}
	return p
}

func TestRecordedStreamsReadAsAnIndependentDecoderReadsThem(t *testing.T) {
	for name, stream := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			units := dialecttest.Units(stream)
			deltas, err := dialecttest.Decode(Dialect{}, request(t), units)
			if err != nil {
				t.Fatal(err)
			}
			s, err := dialecttest.Fold(deltas)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(stream, []byte("text_completion")) {
				// Not this dialect: nothing may be claimed about it.
				if len(s.Blocks) != 0 || s.Opaques == 0 {
					t.Errorf("a stream of old completions reads as:\n%s", dialecttest.Format(s))
				}
				return
			}
			want, got := readPlain(t, stream), plainOf(s)
			for _, ds := range deltas {
				for _, d := range ds {
					if d.Kind == turn.Fault {
						got.errors++
					}
				}
			}
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
				t.Errorf("got:\n%+v\nwant:\n%+v", got, want)
			}
			if ended := want.finish != ""; s.Finished() != ended {
				t.Errorf("finished = %v, the recording has finish_reason %q", s.Finished(), want.finish)
			}
			if s.Opaques != 0 {
				t.Errorf("%d events were not understood", s.Opaques)
			}
		})
	}
}

func TestRecordedStreamsPassTheBattery(t *testing.T) {
	var cases []dialecttest.Case
	for name, stream := range recordings(t) {
		if len(stream) > 12<<10 || bytes.Contains(stream, []byte("text_completion")) {
			continue // the battery is quadratic
		}
		c := dialecttest.Case{Name: name, Request: requestJSON, Stream: stream}
		for _, e := range dialecttest.Units(stream) {
			if ch, err := readChunk(e.Data); err == nil && len(ch.id) > 2 {
				c.ID = string(bytes.Trim(ch.id, `"`))
				break
			}
		}
		cases = append(cases, c)
	}
	dialecttest.Run(t, Dialect{}, cases)
}
