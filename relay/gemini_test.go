package relay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"google.golang.org/genai"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/gemini"
	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

var generate = family{
	name:     "gemini",
	d:        readable{},
	fallback: `{"contents":[{"role":"user","parts":[{"text":"go on"}]}],"tools":[{"functionDeclarations":[{"name":"getWeather"}]}]}`,
	folders:  []string{"gemini"},
	half:     "data: {\"candidates\": [{\"content\": {\"par",
	fault:    "data: {\"error\": {\"code\": 503,\"message\": \"The model is overloaded.\",\"status\": \"UNAVAILABLE\"}}\r\n\r\n",
	marker:   "{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"shed\",\n    \"status\": \"UNAVAILABLE\"\n  }\n}\n\n", // no marker: the bare error
	ping:     "data:\n\n",                                                                                                      // there is none; some gateway's empty data, which goes no further (FIELD-REPORTS B7)
	render:   relaytest.RenderGemini,
	read:     readGenerate,
}

// readable hands the provider model a continuation as the messages it reads.
type readable struct{ gemini.Dialect }

func (d readable) Continue(r *dialect.Request, said *turn.Snapshot, c dialect.Continuation) ([]byte, error) {
	body, err := d.Dialect.Continue(r, said, c)
	if err != nil {
		return nil, err
	}
	return relaytest.GeminiMessages(body)
}

// canned answers a request with the stream in its context.
type canned struct{}

func (canned) RoundTrip(q *http.Request) (*http.Response, error) {
	stream, _ := q.Context().Value(canned{}).([]byte)
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(stream))}, nil
}

var genaiClient = sync.OnceValues(func() (*genai.Client, error) {
	return genai.NewClient(context.Background(), &genai.ClientConfig{
		Backend: genai.BackendVertexAI, Project: "p", Location: "l", HTTPClient: &http.Client{Transport: canned{}},
	})
})

// readGenerate is google.golang.org/genai over a stream. It accumulates nothing, so
// that text is joined and streamed arguments are put together here.
func readGenerate(stream []byte) (message, error) {
	client, err := genaiClient()
	if err != nil {
		return message{}, err
	}
	var m message
	var order []string
	var open *genai.FunctionCall
	id := ""
	hangUp := func() {
		if open != nil {
			m.calls = append(m.calls, open.Name+compactValue(open.Args))
			open = nil
		}
	}
	off := false
	config := &genai.GenerateContentConfig{AutomaticContinuation: &off}
	for r, err := range client.Models.GenerateContentStream(context.WithValue(context.Background(), canned{}, stream), "m", genai.Text("x"), config) {
		if err != nil {
			return message{}, err
		}
		if r.ResponseID != "" && id != "" && r.ResponseID != id {
			return message{}, fmt.Errorf("a second response %q in the stream of %q", r.ResponseID, id)
		}
		if r.ResponseID != "" {
			id = r.ResponseID
		}
		for _, c := range r.Candidates {
			if c.Content != nil {
				for _, p := range c.Content.Parts {
					kind := ""
					switch f := p.FunctionCall; {
					case p.Thought:
						continue
					case f != nil:
						if f.Name != "" {
							kind = "tool_use"
							hangUp()
							open = &genai.FunctionCall{Name: f.Name, Args: f.Args}
						}
						if open == nil {
							continue
						}
						for _, a := range f.PartialArgs {
							fill(open, a)
						}
						if f.WillContinue == nil || !*f.WillContinue {
							hangUp()
						}
					case p.ExecutableCode != nil:
						kind = "code"
					case p.CodeExecutionResult != nil:
						kind = "result"
					case p.Text != "":
						kind = "text"
						m.text += p.Text
					}
					if n := len(order); kind != "" && (kind != "text" || n == 0 || order[n-1] != kind) {
						order = append(order, kind)
					}
				}
			}
			if c.FinishReason != "" {
				if m.finish != "" {
					return message{}, fmt.Errorf("a second finish %s", c.FinishReason)
				}
				m.finish = string(c.FinishReason)
			}
		}
	}
	if m.finish == "" {
		return message{}, fmt.Errorf("no finishReason")
	}
	if open != nil {
		return message{}, fmt.Errorf("call %s has no end", open.Name)
	}
	if m.finish == "STOP" && len(m.calls) > 0 {
		m.finish = "tool_calls" // STOP asks for calls, too
	}
	m.order = strings.Join(order, ",")
	return m, nil
}

// fill puts a partial argument in its place, the dumbest way.
func fill(f *genai.FunctionCall, a *genai.PartialArg) {
	var v any = a.StringValue
	if a.NumberValue != nil {
		v = *a.NumberValue
	}
	path := strings.FieldsFunc(a.JsonPath[1:], func(r rune) bool { return strings.ContainsRune(".[]", r) })
	root, _ := fillAt(f.Args, path, v).(map[string]any)
	f.Args = root
}

func fillAt(at any, path []string, v any) any {
	if len(path) == 0 {
		if was, ok := at.(string); ok {
			return was + v.(string)
		}
		return v
	}
	var i int
	if _, err := fmt.Sscanf(path[0], "%d", &i); err == nil {
		list, _ := at.([]any)
		for len(list) <= i {
			list = append(list, nil)
		}
		list[i] = fillAt(list[i], path[1:], v)
		return list
	}
	obj, _ := at.(map[string]any)
	if obj == nil {
		obj = map[string]any{}
	}
	obj[path[0]] = fillAt(obj[path[0]], path[1:], v)
	return obj
}

func compactValue(args map[string]any) string {
	if args == nil {
		args = map[string]any{}
	}
	b, err := json.Marshal(args)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func TestCutEverywhereGemini(t *testing.T) {
	generate.cutEverywhere(t, relaytest.Recordings(t, generate.fallback, generate.named, generate.folders...))
}

// Without alt=sse the same is the elements of one JSON array.
var generateArray = family{
	name:     "gemini-array",
	d:        readableArray{},
	fallback: generate.fallback,
	folders:  generate.folders,
	half:     ",\r\n{\"candidates\": [{\"content\": {\"par",
	fault:    ",\r\n{\"error\": {\"code\": 503,\"message\": \"The model is overloaded.\",\"status\": \"UNAVAILABLE\"}}\r\n]",
	marker:   "\r\n]\r\n",
	ping:     "\n",
	render: func(a faultinject.Answer, o faultinject.Options) [][]byte {
		return inArray(relaytest.RenderGemini(a, o))
	},
	read: func(body []byte) (message, error) {
		var elements []json.RawMessage
		if err := json.Unmarshal(body, &elements); err != nil {
			return message{}, err
		}
		var stream []byte
		for _, e := range elements {
			var line bytes.Buffer
			if err := json.Compact(&line, e); err != nil {
				return message{}, err
			}
			stream = sse.Append(stream, "", line.Bytes())
		}
		return readGenerate(stream)
	},
}

type readableArray struct{ gemini.Array }

func (d readableArray) Continue(r *dialect.Request, said *turn.Snapshot, c dialect.Continuation) ([]byte, error) {
	return readable{}.Continue(r, said, c)
}

// inArray is an event stream as Google writes it without alt=sse.
func inArray(events [][]byte) [][]byte {
	var out [][]byte
	for _, u := range relaytest.Units(bytes.Join(events, nil)) {
		var sc sse.Scanner
		sc.Push(u)
		if e, _ := sc.Next(); e.Data != nil {
			open := "\n,\r\n"
			if len(out) == 0 {
				open = "["
			}
			out = append(out, append([]byte(open), e.Data...))
		}
	}
	return append(out, []byte("\n]\n"))
}

func arrays(t *testing.T) []relaytest.Recording {
	recs := relaytest.Recordings(t, generate.fallback, generate.named, generate.folders...)
	for i := range recs {
		recs[i].Units = inArray(recs[i].Units)
	}
	return recs
}

func TestCutEverywhereGeminiArray(t *testing.T) { generateArray.cutEverywhere(t, arrays(t)) }
