package openairesponses_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/dialect/openairesponses"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

var d openairesponses.Dialect

// trimmed is a recording whose publisher took most deltas out: its done events say more than was streamed.
const trimmed = "openai-phase"

const hello = `{"model":"gpt-5","stream":true,"input":"Hello"}`

// TestCorpus plays the battery with the recorded streams.
func TestCorpus(t *testing.T) {
	var cases []dialecttest.Case
	for _, r := range recordings(t) {
		switch {
		case r.name == "openai-error", r.name == trimmed, len(r.stream) > 64<<10:
			continue // fails by itself; not whole; the battery is quadratic
		case r.name == "github-copilot-id-rotation":
			// Its item ids change with every event; a rewritten one has the first throughout, which the battery takes
			// for a difference.
			r.stream = settled(r.stream)
		}
		cases = append(cases, dialecttest.Case{Name: r.name, Request: []byte(hello), Stream: r.stream})
	}
	dialecttest.Run(t, d, cases)
}

// TestCorpusAgainstTheOracle compares every recording, as decoded, with what a plain reading of its last event says.
func TestCorpusAgainstTheOracle(t *testing.T) {
	req := dialecttest.Parse(t, d, []byte(hello))
	for _, r := range recordings(t) {
		if r.name == trimmed {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			deltas, err := dialecttest.Decode(d, req, dialecttest.Units(r.stream))
			if err != nil {
				t.Fatal(err)
			}
			s, err := dialecttest.Fold(deltas)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := spelled(s), oracle(t, r.stream); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// spelled prints what an application gets of a message.
func spelled(s *turn.Snapshot) string {
	var b strings.Builder
	for i := range s.Blocks {
		switch k := &s.Blocks[i]; k.Kind {
		case turn.Prose, turn.Refusal:
			fmt.Fprintf(&b, "text %q\n", k.Plain())
		case turn.Reasoning:
			if len(k.Text) > 0 {
				fmt.Fprintf(&b, "thought %q\n", k.Plain())
			}
			if len(k.Signature) > 0 {
				fmt.Fprintf(&b, "signed %q\n", k.Signature)
			}
		case turn.Call:
			fmt.Fprintf(&b, "call %s %s %s\n", k.ID, k.Name, k.Arguments())
		case turn.CustomCall:
			fmt.Fprintf(&b, "custom %s %s %q\n", k.ID, k.Name, k.Plain())
		default:
			fmt.Fprintf(&b, "item %s\n", k.Name)
		}
	}
	fmt.Fprintf(&b, "end %s, tokens %d %d\n", s.End().Reason, s.Usage.Input, s.Usage.Output)
	return b.String()
}

// oracle reads the output_item.done events, which hold everything, with encoding/json, and the usage of the terminal. The
// encrypted_content of the terminal's output is another one: it is made anew for every event.
func oracle(t *testing.T, stream []byte) string {
	t.Helper()
	type piece struct{ Text, Refusal string }
	var b strings.Builder
	end, in, out := "", 0, 0
	for line := range bytes.Lines(stream) {
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		var e struct {
			Type string
			Item struct {
				Type, Name, Arguments, Input string
				CallID                       string `json:"call_id"`
				Encrypted                    string `json:"encrypted_content"`
				Content, Summary             []piece
			}
			Response struct {
				Status string
				Usage  struct {
					In  int `json:"input_tokens"`
					Out int `json:"output_tokens"`
				}
			}
		}
		if err := json.Unmarshal(data, &e); err != nil {
			t.Fatal(err)
		}
		switch it := e.Item; e.Type + " " + it.Type {
		case "response.completed ":
			end, in, out = e.Response.Status, e.Response.Usage.In, e.Response.Usage.Out
		case "response.output_item.done message":
			for _, c := range it.Content {
				fmt.Fprintf(&b, "text %q\n", c.Text+c.Refusal)
			}
		case "response.output_item.done reasoning":
			for i, c := range append(append(it.Summary, it.Content...), piece{}) {
				if c.Text != "" {
					fmt.Fprintf(&b, "thought %q\n", c.Text)
				}
				if i == 0 && it.Encrypted != "" {
					fmt.Fprintf(&b, "signed %q\n", it.Encrypted)
				}
			}
		case "response.output_item.done function_call":
			fmt.Fprintf(&b, "call %s %s %s\n", it.CallID, it.Name, it.Arguments)
		case "response.output_item.done custom_tool_call":
			fmt.Fprintf(&b, "custom %s %s %q\n", it.CallID, it.Name, it.Input)
		default:
			if e.Type == "response.output_item.done" {
				fmt.Fprintf(&b, "item %s\n", it.Type)
			}
		}
	}
	fmt.Fprintf(&b, "end %s, tokens %d %d\n", end, in, out)
	return b.String()
}

// settled gives an item of the rotating recording the same id in all of its events.
func settled(stream []byte) []byte {
	stream = regexp.MustCompile(`"item_id":"capture-id-\d+"`).ReplaceAll(stream, []byte(`"item_id":"same"`))
	return regexp.MustCompile(`"id":"capture-id-([3-9]|\d\d)"`).ReplaceAll(stream, []byte(`"id":"same"`))
}

type recording struct {
	name   string
	stream []byte
}

// recordings reads the corpus. Files of bare chunks get the event lines that the provider sends with them; a file that
// holds several responses is several recordings.
func recordings(t testing.TB) []recording {
	t.Helper()
	dir := os.Getenv("UNBROKEN_CORPUS")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "corpus")
	}
	files, err := filepath.Glob(filepath.Join(dir, "openai-responses", "*"))
	if err != nil || len(files) == 0 {
		t.Skip("no recorded streams: set UNBROKEN_CORPUS to the corpus directory")
	}
	var out []recording
	for _, f := range files {
		name, ok := strings.CutSuffix(filepath.Base(f), ".sse")
		name, chunks := strings.CutSuffix(name, ".1.chunks.txt")
		if !ok && !chunks {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !chunks {
			out = append(out, recording{name, b})
			continue
		}
		for i, one := range framed(t, b) {
			if i > 0 {
				out = append(out, recording{fmt.Sprintf("%s-%d", name, i+1), one})
			} else {
				out = append(out, recording{name, one})
			}
		}
	}
	return out
}

func framed(t testing.TB, lines []byte) (out [][]byte) {
	for line := range bytes.Lines(lines) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var e struct{ Type string }
		if !json.Valid(line) {
			line = append(bytes.Clone(line), '}') // two lines of parallel-tool-call-wrapper lack their last brace
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if e.Type == "response.created" || len(out) == 0 {
			out = append(out, nil)
		}
		out[len(out)-1] = sse.Append(out[len(out)-1], e.Type, line)
	}
	return out
}
