package dialect_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/anthropic"
	"github.com/unbroken-llm/unbroken/dialect/bedrock"
	"github.com/unbroken-llm/unbroken/dialect/completions"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/dialect/gemini"
	"github.com/unbroken-llm/unbroken/dialect/interactions"
	"github.com/unbroken-llm/unbroken/dialect/openaichat"
	"github.com/unbroken-llm/unbroken/dialect/openairesponses"
	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// learned is what the ledger is told of a turn, choice by choice, and the text of it.
// How what is said beside calls is cut into blocks is the stream's affair.
func learned(s *turn.Snapshot) string {
	var b strings.Builder
	fmt.Fprintf(&b, "usage %t %d %d\n", s.Usage.Known, s.Usage.Input, s.Usage.Output)
	for choice, e := range s.Ends {
		fmt.Fprintf(&b, "choice %d: %s %s\n", choice, e.Why, e.Reason)
		said := map[turn.BlockKind][]byte{}
		for i := range s.Blocks {
			switch k := &s.Blocks[i]; {
			case k.Choice != choice:
			case k.IsCall():
				fmt.Fprintf(&b, "call %s %s %s %t\n", k.ID, k.Name, k.Arguments(), k.Complete())
			default:
				said[k.Kind] = append(said[k.Kind], k.Plain()...)
			}
		}
		fmt.Fprintf(&b, "text %q refusal %q\n", said[turn.Prose], said[turn.Refusal])
	}
	return b.String()
}

// streamed reads events; nil if they are no whole turn.
func streamed(d dialect.Dialect, r *dialect.Request, units []sse.Event) *turn.Snapshot {
	deltas, err := dialecttest.Decode(d, r, units)
	if err != nil {
		return nil
	}
	s, err := dialecttest.Fold(deltas)
	for _, ds := range deltas {
		for _, x := range ds {
			if x.Kind == turn.Fault || x.Kind == turn.Finish && x.Why == turn.Broken {
				return nil
			}
		}
	}
	if err != nil || !s.Finished() {
		return nil
	}
	return s
}

// answering are the dialects and what the provider under test calls them.
var answering = []struct {
	d    dialect.Dialect
	kind faultinject.Dialect
}{
	{openaichat.Dialect{}, faultinject.Chat},
	{completions.Dialect{}, faultinject.Completions},
	{openairesponses.Dialect{}, faultinject.Responses},
	{anthropic.Dialect{}, faultinject.Messages},
	{gemini.Dialect{}, faultinject.Gemini},
	{interactions.Dialect{}, faultinject.Interactions},
	{bedrock.Converse{}, faultinject.Converse},
	{bedrock.Invoke{}, faultinject.Invoke},
}

// What is learned of the ordinary answer is what is learned of the stream, in every
// scenario of a provider that gives both.
func TestOrdinaryAnswerTellsWhatTheStreamTells(t *testing.T) {
	for _, p := range answering {
		for _, name := range faultinject.ScenarioNames() {
			for _, n := range []int{1, 3} {
				if n > 1 && p.kind != faultinject.Chat && p.kind != faultinject.Completions && p.kind != faultinject.Gemini {
					continue
				}
				model := "gpt-4o"
				if p.kind == faultinject.Gemini || p.kind == faultinject.Interactions {
					model = "gemini-3-pro"
				}
				a, err := faultinject.Scenario(name, faultinject.Prompt{Dialect: p.kind, Model: model}, faultinject.Config{})
				if err != nil {
					t.Fatal(err)
				}
				o := faultinject.Options{Model: model, ID: "id-1", Created: 1770853433, IncludeUsage: true, N: n, Seed: 7}
				r := &dialect.Request{N: n}
				stream := streamed(p.d, r, dialecttest.UnitsOf(p.d, bytes.Join(faultinject.Raws(faultinject.Render(p.kind, a, o)), nil)))
				whole := faultinject.RenderWhole(p.kind, a, o)
				said, ok := dialect.Read(p.d, r, whole)
				if stream == nil && !ok {
					continue // a turn that failed
				}
				if stream == nil || !ok {
					t.Fatalf("%s, %s: the stream is whole: %t, the answer: %t: %s", p.d.Name(), name, stream != nil, ok, whole)
				}
				if got, want := learned(said), learned(stream); got != want {
					t.Errorf("%s, %s, n=%d:\ngot  %s\nwant %s\nof %s", p.d.Name(), name, n, got, want, whole)
				}
			}
		}
	}
}

// TestFoldedAnswersTellWhatTheirStreamsTell: what is learned survives the way to the
// ordinary answer and back, of everything that was recorded and composed.
func TestFoldedAnswersTellWhatTheirStreamsTell(t *testing.T) {
	for name, got := range map[string]int{
		"composed":   composedTell(t),
		"recordings": recordingsTell(t),
	} {
		if t.Logf("%d %s", got, name); got < 30 && (name == "composed" || relaytest.Corpus() != "") {
			t.Errorf("only %d %s", got, name)
		}
	}
}

func composedTell(t *testing.T) (n int) {
	for dir, d := range map[string]dialect.Upgrader{
		"openaichat": openaichat.Dialect{}, "completions": completions.Dialect{}, "openairesponses": openairesponses.Dialect{},
		"anthropic": anthropic.Dialect{}, "gemini": gemini.Dialect{}, "bedrock/testdata/converse/..": bedrock.Converse{}, "bedrock/testdata/invoke/..": bedrock.Invoke{},
	} {
		pattern := filepath.Join(dir, "testdata", "*", "stream.sse")
		if strings.HasSuffix(dir, "..") {
			pattern = filepath.Join(strings.TrimSuffix(dir, ".."), "*", "stream.sse")
		}
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %d cases", dir, err, len(files))
		}
		for _, file := range files {
			stream, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			units := dialecttest.Units(stream)
			if _, framed := d.(bedrock.Invoke); framed {
				for i := range units {
					units[i].Name = nil
				}
			}
			n += foldTells(t, d, file, units)
		}
	}
	return n
}

func recordingsTell(t *testing.T) (n int) {
	if relaytest.Corpus() == "" {
		t.Log("no recorded streams")
		return 0
	}
	for folder, d := range map[string]dialect.Upgrader{
		"azure": openaichat.Dialect{}, "deepseek": openaichat.Dialect{}, "gpustack-vllm": openaichat.Dialect{}, "groq": openaichat.Dialect{}, "mistral": openaichat.Dialect{},
		"ollama": openaichat.Dialect{}, "openai-chat": openaichat.Dialect{}, "openrouter": openaichat.Dialect{}, "perplexity": openaichat.Dialect{}, "xai": openaichat.Dialect{},
		"openai-responses": openairesponses.Dialect{}, "anthropic": anthropic.Dialect{}, "gemini": gemini.Dialect{}, "bedrock": bedrock.Converse{},
	} {
		for _, r := range relaytest.Recordings(t, `{}`, typeOf, folder) {
			if strings.Contains(r.Name, "openai-phase") {
				continue // its deltas were thinned out by whoever recorded it
			}
			d := d
			if folder == "bedrock" && strings.Contains(r.Name, "invoke") {
				d = bedrock.Invoke{}
			}
			n += foldTells(t, d, r.Name, dialecttest.UnitsOf(d, r.Stream()))
		}
	}
	return n
}

// foldTells returns 1 if the events are a whole turn, and what is learned of it is
// learned of its fold.
func foldTells(t *testing.T, d dialect.Upgrader, name string, units []sse.Event) int {
	t.Helper()
	r := &dialect.Request{N: 1}
	stream := streamed(d, r, units)
	if stream == nil {
		return 0
	}
	if _, unfinished := stream.Calls(); unfinished > 0 {
		return 0 // an ordinary answer cannot say where arguments were cut
	}
	f := d.NewFold()
	for _, e := range units {
		f.Add(e)
	}
	answer, ok := f.Whole(nil)
	if !ok {
		return 0
	}
	said, ok := dialect.Read(d, r, answer)
	if !ok {
		t.Errorf("%s is not read: %s", name, answer)
		return 1
	}
	if got, want := learned(said), learned(stream); got != want {
		t.Errorf("%s:\ngot  %s\nwant %s\nof %s", name, got, want, answer)
	}
	return 1
}

// What has not ended, or went wrong, is no turn, whatever its status was; nor is what
// another protocol says.
func TestWhatIsNoWholeAnswerTellsNothing(t *testing.T) {
	for _, p := range answering {
		for _, answer := range []string{
			``, `{}`, `[]`, `null`, `"text"`, `{"choices":[]}`, `{"choices":[{"index":0,"message":{"role":"assistant","content":"half`,
			`{"error":{"message":"overloaded","type":"server_error","code":503}}`,
			`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
			`{"message":"Too many requests"}`,
			`{"choices":[{"index":0,"message":{"role":"assistant","content":"and so"},"text":"and so","finish_reason":null}]}`,
			`{"choices":[{"index":0,"message":{"role":"assistant","content":"and so"},"text":"and so","finish_reason":"error"}]}`,
			`{"id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"and so"}],"stop_reason":null}`,
			`{"id":"resp_1","object":"response","status":"in_progress","output":[]}`,
			`{"id":"resp_1","object":"response","status":"queued","output":[]}`,
			`{"id":"resp_1","object":"response","status":"failed","error":{"code":"server_error","message":"x"},"output":[]}`,
			`{"id":"resp_1","object":"response","status":"cancelled","output":[]}`,
			`{"candidates":[{"content":{"parts":[{"text":"and so"}]}}]}`,
			`{"id":"v1_1","object":"interaction","status":"in_progress","steps":[]}`,
			`{"id":"v1_1","object":"interaction","status":"failed","steps":[]}`,
			`{"output":{"message":{"role":"assistant","content":[{"text":"and so"}]}}}`,
		} {
			if said, ok := dialect.Read(p.d, &dialect.Request{N: 1}, []byte(answer)); ok {
				t.Errorf("%s reads %s as %s", p.d.Name(), answer, learned(said))
			}
		}
	}
}

// Calls without ids, several of one name and one with the arguments of a placeholder,
// are as many calls as the message has.
func TestCallsOfAWholeMessageStandForThemselves(t *testing.T) {
	answer := []byte(`{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[` +
		`{"function":{"name":"look","arguments":""}},{"function":{"name":"look","arguments":{"at":1}}},{"id":"c","function":{"name":"look","arguments":"{}"}}]}}]}`)
	said, ok := dialect.Read(openaichat.Dialect{}, &dialect.Request{N: 1}, answer)
	if whole, _ := said.Calls(); !ok || whole != 3 {
		t.Fatalf("%t: %s", ok, learned(said))
	}
	if got := string(said.Blocks[1].Arguments()); got != `{"at":1}` {
		t.Errorf("arguments %s", got)
	}
}
