package interactions

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/turn"
)

const requestJSON = `{"model":"gemini-3-pro","input":"go on","stream":true,"store":false}`

func request(t testing.TB) *dialect.Request {
	return dialecttest.Parse(t, Dialect{}, []byte(requestJSON))
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       dialect.Request
	}{
		{"kept by the provider unless told otherwise", `{"model":"m","input":"x","stream":true}`, dialect.Request{Stream: true, Unsplicable: "stored interaction", Kept: true}},
		{"not kept", `{"model":"m","input":"x","store":false}`, dialect.Request{}},
		{"in the background", `{"model":"m","input":"x","store":false,"background":true}`, dialect.Request{Unsplicable: "background", Kept: true}},
		{"an agent's", `{"agent":"a","model":"m","input":"x","store":false}`, dialect.Request{Unsplicable: "agent"}},
		{"from a checkpoint, without input", `{"model":"m","continuation_token":"t"}`, dialect.Request{Unsplicable: "continuation_token", Kept: true}},
		{"config", `{"model":"m","input":"x","store":false,"generation_config":{"max_output_tokens":7,"stop_sequences":["a"],"thinking_level":"low","tool_choice":"any"}}`,
			dialect.Request{MaxTokens: 7, Stops: []string{"a"}, Thinking: true, ForcedTool: true}},
		{"tools", `{"model":"m","input":"x","store":false,"tools":[{"type":"function","name":"f"},{"type":"google_search"},{"type":"code_execution"},{"type":"mcp_server"}]}`,
			dialect.Request{Tools: true, HostedTools: []string{"code_execution", "mcp_server"}}},
		{"a format", `{"model":"m","input":"x","store":false,"response_format":[{"type":"text","mime_type":"application/json","schema":{"type":"object"}}]}`,
			dialect.Request{Structured: true, Schema: []byte(`{"type":"object"}`)}},
		{"a bare schema", `{"model":"m","input":"x","store":false,"response_format":{"type":"object"}}`, dialect.Request{Structured: true, Schema: []byte(`{"type":"object"}`)}},
		{"json mode", `{"model":"m","input":"x","store":false,"response_mime_type":"application/json"}`, dialect.Request{Structured: true, Schema: []byte(`{}`)}},
		{"its own partial output", `{"model":"m","store":false,"input":[{"type":"user_input","content":[{"type":"text","text":"q"}]},{"type":"model_output","content":[{"type":"text","text":"It "}]}]}`,
			dialect.Request{Prefill: []byte("It ")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Dialect{}.Parse([]byte(c.body))
			if err != nil {
				t.Fatal(err)
			}
			c.want.Body, c.want.N, c.want.IncludeUsage, c.want.Model = []byte(c.body), 1, true, "m"
			if !reflect.DeepEqual(*got, c.want) {
				t.Errorf("got  %+v\nwant %+v", *got, c.want)
			}
		})
	}
	for body, want := range map[string]error{`[`: ErrRequest, `{"model":"m"}`: ErrInput} {
		if _, err := (Dialect{}).Parse([]byte(body)); err != want {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestContinue(t *testing.T) {
	const thought = `{"index":0,"step":{"type":"thought"},"event_type":"step.start"}|{"index":0,"delta":{"type":"thought_summary","content":{"type":"text","text":"Hm."}},"event_type":"step.delta"}|{"index":0,"delta":{"type":"thought_signature","signature":"cw=="},"event_type":"step.delta"}`
	const stop = `|{"index":0,"event_type":"step.stop"}|`
	const output = `{"index":1,"step":{"type":"model_output"},"event_type":"step.start"}|{"index":1,"delta":{"type":"text","text":"One \n"},"event_type":"step.delta"}`
	const call = `|{"index":2,"step":{"type":"function_call","id":"c","name":"f","arguments":{}},"event_type":"step.start"}`
	const q = `"input":[{"type":"user_input","content":[{"type":"text","text":"q"}]},`
	for _, c := range []struct {
		name, request, said string
		c                   dialect.Continuation
		want                string
		err                 error
	}{
		{name: "a string becomes a step", request: `{"model":"m","input":"q","store":false}`, said: output, c: dialect.Continuation{Manner: turn.Prefill},
			want: `{"model":"m",` + q + `{"type":"model_output","content":[{"type":"text","text":"One"}]}],"store":false,"stream":true}`},
		{name: "so does a list of content", request: `{"model":"m","input":[{"type":"text","text":"q"}],"store":false}`, said: output, c: dialect.Continuation{Manner: turn.Prefill},
			want: `{"model":"m",` + q + `{"type":"model_output","content":[{"type":"text","text":"One"}]}],"store":false,"stream":true}`},
		{name: "steps stay; a signed thought comes back; a cut call does not", request: `{"input":[{"type":"user_input","content":[{"type":"text","text":"q"}]} ],"store":false,"stream":true,"generation_config":{"max_output_tokens":9}}`,
			said: thought + stop + output + call, c: dialect.Continuation{Manner: turn.Prefill, MaxTokens: 4},
			want: `{` + q + `{"type":"thought","signature":"cw==","summary":[{"type":"text","text":"Hm."}]},{"type":"model_output","content":[{"type":"text","text":"One"}]}],"store":false,"stream":true,"generation_config":{"max_output_tokens":4}}`},
		{name: "an unfinished thought does not come back", request: `{"input":"q","store":false,"stream":true}`, said: thought + "|" + output, c: dialect.Continuation{Manner: turn.Prefill},
			want: `{` + q + `{"type":"model_output","content":[{"type":"text","text":"One"}]}],"store":false,"stream":true}`},
		{name: "the caller's own partial output goes on", request: `{"input":[{"type":"user_input","content":[{"type":"text","text":"q"}]},{"type":"model_output","content":[{"type":"text","text":"Well, "}]}],"store":false,"stream":true}`,
			said: output, c: dialect.Continuation{Manner: turn.Prefill},
			want: `{` + q + `{"type":"model_output","content":[{"type":"text","text":"Well, "},{"type":"text","text":"One"}]}],"store":false,"stream":true}`},
		{name: "no grammar, another model", request: `{"model":"m","input":"q","store":false,"stream":true,"response_format":{"type":"object"}}`, said: output, c: dialect.Continuation{Manner: turn.Prefill, Model: "n"},
			want: `{"model":"n",` + q + `{"type":"model_output","content":[{"type":"text","text":"One"}]}],"store":false,"stream":true}`},
		{name: "nothing", request: `{"input":"q"}`, said: thought + stop, c: dialect.Continuation{Manner: turn.Prefill}, err: ErrNothing},
		{name: "no manner", request: `{"input":"q"}`, said: output, c: dialect.Continuation{Manner: turn.Provider}, err: ErrManner},
		{name: "a whole call", request: `{"input":"q"}`, said: output + call + `|{"index":2,"event_type":"step.stop"}`, c: dialect.Continuation{Manner: turn.Prefill}, err: ErrCall},
		{name: "a hosted tool", request: `{"input":"q"}`, said: output + `|{"index":2,"step":{"type":"google_search_call","id":"s"},"event_type":"step.start"}`, c: dialect.Continuation{Manner: turn.Prefill}, err: ErrUnknown},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := dialecttest.Parse(t, Dialect{}, []byte(c.request))
			body, err := Dialect{}.Continue(r, said(t, c.said), c.c)
			if !errors.Is(err, c.err) {
				t.Fatal(err)
			}
			if string(body) != c.want {
				t.Errorf("got  %s\nwant %s", body, c.want)
			}
		})
	}
	t.Run("asked", func(t *testing.T) {
		r := dialecttest.Parse(t, Dialect{}, []byte(`{"input":"q","store":false}`))
		body, err := Dialect{}.Continue(r, said(t, output), dialect.Continuation{Manner: turn.Asked, Anchor: 3, Sentinel: "[[DONE]]"})
		if err != nil || !bytes.Contains(body, []byte(`]},{"type":"user_input","content":[{"type":"text","text":"Your previous reply`)) ||
			!bytes.Contains(body, []byte("→One←")) || !bytes.Contains(body, []byte("[[DONE]]")) {
			t.Errorf("%s, %v", body, err)
		}
	})
}

func said(t *testing.T, events string) *turn.Snapshot {
	t.Helper()
	var stream []byte
	for _, e := range strings.Split(events, "|") {
		if e != "" {
			stream = append(append(append(stream, "data: "...), e...), "\n\n"...)
		}
	}
	return dialecttest.Read(t, Dialect{}, request(t), stream)
}

// DESIGN §3: reasoning that a restart made worthless is closed under a mark, and the
// mark never goes upstream.
func TestDroppedThoughtsAreTakenOutOfLaterRequests(t *testing.T) {
	s := said(t, `{"index":0,"step":{"type":"thought"},"event_type":"step.start"}|{"index":0,"delta":{"type":"thought_summary","content":{"type":"text","text":"Hm."}},"event_type":"step.delta"}`)
	out := Dialect{}.DropReasoning(nil, s, 0)
	again := dialecttest.Read(t, Dialect{}, request(t), append([]byte("data: {\"index\":0,\"step\":{\"type\":\"thought\"},\"event_type\":\"step.start\"}\n\n"), out...))
	if b := &again.Blocks[0]; !b.Closed || string(b.Signature) != turn.DropMark {
		t.Fatalf("rendered %s", out)
	}
	keep, drop := `{"type":"user_input","content":[]}`, `{"type":"thought","signature":"`+turn.DropMark+`","summary":[]}`
	for body, want := range map[string]string{
		`{"input":[` + keep + `, ` + drop + `,` + keep + `],"x":1}`: `{"input":[` + keep + `,` + keep + `],"x":1}`,
		`{"input":"` + turn.DropMark + `"}`:                         `{"input":"` + turn.DropMark + `"}`,
		`{"input":[` + keep + `]}`:                                  `{"input":[` + keep + `]}`,
	} {
		if got := (Dialect{}).Repair([]byte(body)); string(got) != want {
			t.Errorf("got %s", got)
		}
	}
}

func TestALaterAttemptsCursorsNeverLeave(t *testing.T) {
	d, r := Dialect{}, request(t)
	s := said(t, `{"interaction":{"id":"A","status":"in_progress"},"event_type":"interaction.created"}`)
	e := dialecttest.Units([]byte("event: interaction.completed\ndata: {\"interaction\":{\"id\":\"B\",\"status\":\"requires_continuation\",\"continuation_token\":\"t\"},\"event_id\":\"e\",\"event_type\":\"interaction.completed\"}\n\n"))[0]
	ds, err := d.NewDecoder(r).Decode(nil, e)
	if err != nil {
		t.Fatal(err)
	}
	want := "event: interaction.completed\ndata: {\"interaction\":{\"id\":\"A\",\"status\":\"requires_continuation\"},\"event_type\":\"interaction.completed\"}\n\n"
	if got := d.Rewrite(nil, r, e, ds, s); string(got) != want {
		t.Errorf("got %s", got)
	}
}

func FuzzDecodeAndRewrite(f *testing.F) {
	f.Add([]byte("event: step.start\ndata: {\"index\":0,\"step\":{\"type\":\"function_call\",\"id\":\"c\",\"name\":\"f\",\"arguments\":{\"a\":1}},\"event_type\":\"step.start\"}\n\n"), uint16(0))
	f.Add([]byte("data: {\"index\":0,\"step\":{\"type\":\"thought\"},\"event_type\":\"step.start\"}\n\ndata: {\"index\":0,\"delta\":{\"type\":\"thought_signature\",\"signature\":\"a\"},\"metadata\":{\"usage\":{\"total_tokens\":1,\"total_input_tokens\":1}},\"event_type\":\"step.delta\"}\n\n"), uint16(2))
	r := request(f)
	f.Fuzz(func(t *testing.T, stream []byte, out uint16) {
		dec, s := Dialect{}.NewDecoder(r), &turn.Snapshot{Head: []byte(`{"interaction":{"id":"A","model":"m"}}`)}
		for _, e := range dialecttest.Units(stream) {
			ds, err := dec.Decode(nil, e)
			if err != nil {
				continue
			}
			was := append([]turn.Delta(nil), ds...)
			for i := range ds {
				if out>>(i%16)&1 != 0 {
					ds[i].Kind = turn.Skip
				}
			}
			Dialect{}.Rewrite(nil, r, e, ds, s)
			for _, d := range was {
				if err := s.Fold(d); err != nil {
					t.Fatalf("%s: %v", dialecttest.FormatDelta(d), err)
				}
			}
		}
	})
}
