package gemini

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

// recordings returns the recorded streams. They are not part of the repository;
// UNBROKEN_CORPUS names their directory.
func recordings(t testing.TB) map[string][]byte {
	t.Helper()
	root := os.Getenv("UNBROKEN_CORPUS")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "corpus")
	}
	if _, err := os.Stat(root); err != nil {
		t.Skip("no corpus of recorded streams: set UNBROKEN_CORPUS")
	}
	files, err := filepath.Glob(filepath.Join(root, "gemini", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal("no recordings of this dialect", err)
	}
	out := map[string][]byte{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case strings.HasSuffix(f, ".sse"):
			out[filepath.Base(f)] = b
		case strings.HasSuffix(f, ".chunks.txt"):
			var stream []byte
			for line := range bytes.Lines(b) {
				stream = sse.Append(stream, "", bytes.TrimSpace(line))
			}
			out[filepath.Base(f)] = stream
		}
	}
	return out
}

// plainTurn is a turn as encoding/json and the simplest of accumulators see it.
type plainTurn struct {
	text, thoughts string
	signatures     []string
	calls          []string
	hosted         []string
	finish         string
	in, out        int64
	errors         int
}

type plainChunk struct {
	Candidates []struct {
		Content struct {
			Parts []struct {
				Text, ThoughtSignature string
				Thought                bool
				FunctionCall           *struct {
					ID, Name     string
					Args         map[string]any
					WillContinue bool
					PartialArgs  []struct {
						JSONPath    string `json:"jsonPath"`
						StringValue *string
						NumberValue *float64
						BoolValue   *bool
					}
				}
				ExecutableCode, CodeExecutionResult *struct{ Code, Output string }
			}
		}
		FinishReason string
	}
	UsageMetadata *struct {
		PromptTokenCount, ToolUsePromptTokenCount, CandidatesTokenCount, ThoughtsTokenCount, TotalTokenCount int64
	}
	Error any
}

func readPlain(t testing.TB, stream []byte) plainTurn {
	t.Helper()
	var p plainTurn
	var name string
	var args any
	hangUp := func() {
		if args != nil {
			p.calls = append(p.calls, name+canonical(args))
		}
		args = nil
	}
	for _, line := range strings.Split(string(stream), "\n") {
		body, ok := strings.CutPrefix(strings.TrimSpace(line), "data:")
		if !ok {
			continue
		}
		var c plainChunk
		if err := json.Unmarshal([]byte(body), &c); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		if c.Error != nil {
			p.errors++
		}
		if u := c.UsageMetadata; u != nil && u.TotalTokenCount > 0 {
			p.in, p.out = u.PromptTokenCount+u.ToolUsePromptTokenCount, u.CandidatesTokenCount+u.ThoughtsTokenCount
		}
		for _, cand := range c.Candidates {
			for _, part := range cand.Content.Parts {
				switch {
				case part.Thought:
					p.thoughts += part.Text
				default:
					p.text += part.Text
				}
				if part.ThoughtSignature != "" {
					p.signatures = append(p.signatures, part.ThoughtSignature)
				}
				if part.ExecutableCode != nil {
					p.hosted = append(p.hosted, part.ExecutableCode.Code)
				}
				if part.CodeExecutionResult != nil {
					p.hosted = append(p.hosted, part.CodeExecutionResult.Output)
				}
				f := part.FunctionCall
				if f == nil {
					continue
				}
				if f.Name != "" {
					hangUp()
					name, args = f.Name, any(map[string]any{})
				}
				if f.Args != nil {
					args = f.Args
				}
				for _, a := range f.PartialArgs {
					var v any
					switch {
					case a.StringValue != nil:
						v = *a.StringValue
					case a.NumberValue != nil:
						v = *a.NumberValue
					case a.BoolValue != nil:
						v = *a.BoolValue
					}
					args = put(args, strings.FieldsFunc(a.JSONPath[1:], func(r rune) bool { return strings.ContainsRune(".[]", r) }), v)
				}
				if !f.WillContinue {
					hangUp()
				}
			}
			if cand.FinishReason != "" {
				p.finish = cand.FinishReason
			}
		}
	}
	hangUp()
	return p
}

// put is the dumbest way to set a value at a path; strings are joined.
func put(at any, path []string, v any) any {
	if len(path) == 0 {
		if was, ok := at.(string); ok {
			return was + v.(string)
		}
		return v
	}
	var index int
	if _, err := fmt.Sscanf(path[0], "%d", &index); err == nil {
		list, _ := at.([]any)
		for len(list) <= index {
			list = append(list, nil)
		}
		list[index] = put(list[index], path[1:], v)
		return list
	}
	obj, _ := at.(map[string]any)
	if obj == nil {
		obj = map[string]any{}
	}
	obj[path[0]] = put(obj[path[0]], path[1:], v)
	return obj
}

func canonical(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// plainOf is the same view of a snapshot.
func plainOf(t testing.TB, s *turn.Snapshot) plainTurn {
	t.Helper()
	p := plainTurn{finish: s.End().Reason, in: s.Usage.Input, out: s.Usage.Output}
	for i := range s.Blocks {
		b := &s.Blocks[i]
		var raw struct {
			ThoughtSignature string
			ExecutableCode   struct{ Code string }
			Result           struct{ Output string } `json:"codeExecutionResult"`
		}
		if b.Raw != nil {
			if err := json.Unmarshal(b.Raw, &raw); err != nil {
				t.Fatalf("%v: %s", err, b.Raw)
			}
		}
		if raw.ThoughtSignature != "" {
			p.signatures = append(p.signatures, raw.ThoughtSignature)
		}
		if len(b.Signature) > 0 {
			p.signatures = append(p.signatures, string(b.Signature))
		}
		switch b.Kind {
		case turn.Prose:
			p.text += string(b.Plain())
		case turn.Reasoning:
			p.thoughts += string(b.Plain())
		case turn.Hosted:
			p.hosted = append(p.hosted, raw.ExecutableCode.Code)
		case turn.HostedResult:
			p.hosted = append(p.hosted, raw.Result.Output)
		case turn.Call:
			var args any
			if err := json.Unmarshal(b.Arguments(), &args); err != nil || !b.Complete() {
				t.Errorf("call %s is not whole: %q %v", b.Name, b.Arguments(), err)
			}
			p.calls = append(p.calls, b.Name+canonical(args))
		}
	}
	return p
}

func TestRecordedStreamsReadAsAnIndependentDecoderReadsThem(t *testing.T) {
	for name, stream := range recordings(t) {
		t.Run(name, func(t *testing.T) {
			s := dialecttest.Read(t, Dialect{}, request(t), stream)
			want, got := readPlain(t, stream), plainOf(t, s)
			if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
				t.Errorf("got:\n%+v\nwant:\n%+v", got, want)
			}
			if !s.Finished() || want.finish == "" {
				t.Errorf("finished = %v, the recording has finishReason %q", s.Finished(), want.finish)
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
		c := dialecttest.Case{Name: name, Request: []byte(requestJSON), Stream: stream}
		ch, err := readChunk(dialecttest.Units(stream)[0].Data)
		if err != nil {
			t.Fatal(err)
		}
		c.ID = plain(ch.id)
		cases = append(cases, c)
	}
	// The recordings count tokens in every chunk; the battery wants an event of
	// text alone, too.
	cases = append(cases, dialecttest.Case{Name: "text alone", Request: []byte(requestJSON), Stream: data(parts(`{"text":"a"}`), parts(`{"text":"b"}`))})
	dialecttest.Run(t, Dialect{}, cases)
}

// Two thirds of a Gemini stream are events of text with a running total.
func TestTextWithUsageDecodesWithoutAllocation(t *testing.T) {
	for name, stream := range recordings(t) {
		dec := Dialect{}.NewDecoder(request(t))
		dst := make([]turn.Delta, 0, 16)
		for i, e := range dialecttest.Units(stream) {
			ds, err := dec.Decode(dst, e)
			if err != nil {
				t.Fatal(err)
			}
			if len(ds) != 2 || ds[0].Kind != turn.Text || ds[1].Kind != turn.Count {
				continue
			}
			if n := testing.AllocsPerRun(20, func() {
				if _, err := dec.Decode(dst, e); err != nil {
					t.Error(err)
				}
			}); n != 0 {
				t.Errorf("%s, unit %d: %v allocations", name, i, n)
			}
		}
	}
}
