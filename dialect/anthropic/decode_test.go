package anthropic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/anthropic"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// heard is a turn as encoding/json and a few lines of accumulation read it.
type heard struct {
	ID, Stop      string
	Blocks        []heardBlock
	Input, Output int64
	Ended         bool
}

type heardBlock struct {
	Type, ID, Name, Text, Signature string
	Extras                          int
	Closed                          bool
}

// listen is the oracle: it shares nothing with the decoder but the recording.
func listen(t *testing.T, stream []byte) heard {
	t.Helper()
	type block struct {
		Type, ID, Name, Text, Thinking, Signature string
		Input                                     json.RawMessage
	}
	var h heard
	for _, e := range strings.Split(strings.ReplaceAll(string(stream), "\r\n", "\n"), "\n\n") {
		_, data, ok := strings.Cut(e, "data: ")
		if !ok {
			continue
		}
		var m struct {
			Type         string
			Index        int
			ContentBlock block `json:"content_block"`
			Message      struct {
				ID    string
				Usage struct {
					Input  int64 `json:"input_tokens"`
					Output int64 `json:"output_tokens"`
				}
			}
			Delta struct {
				Type, Text, Thinking, Signature string
				Partial                         string `json:"partial_json"`
				Stop                            string `json:"stop_reason"`
			}
			Usage struct {
				Input  *int64 `json:"input_tokens"`
				Output int64  `json:"output_tokens"`
			}
		}
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		switch m.Type {
		case "message_start":
			h.ID, h.Input, h.Output = m.Message.ID, m.Message.Usage.Input, m.Message.Usage.Output
		case "content_block_start":
			b := m.ContentBlock
			h.Blocks = append(h.Blocks, heardBlock{Type: b.Type, ID: b.ID, Name: b.Name, Text: b.Text + b.Thinking, Signature: b.Signature})
		case "content_block_delta":
			b := &h.Blocks[m.Index]
			b.Text += m.Delta.Text + m.Delta.Thinking + m.Delta.Partial
			b.Signature += m.Delta.Signature
			if m.Delta.Type == "citations_delta" {
				b.Extras++
			}
		case "content_block_stop":
			h.Blocks[m.Index].Closed = true
		case "message_delta":
			h.Stop, h.Output = m.Delta.Stop, m.Usage.Output
			if m.Usage.Input != nil {
				h.Input = *m.Usage.Input
			}
			for i := range h.Blocks {
				h.Blocks[i].Closed = true // the turn finished over it
			}
		case "message_stop":
			h.Ended = true
		}
	}
	return h
}

// retold turns a snapshot into the oracle's words.
func retold(s *turn.Snapshot) heard {
	h := heard{Stop: s.End().Reason, Input: s.Usage.Input, Output: s.Usage.Output, Ended: s.Terminated}
	var head struct{ Message struct{ ID string } }
	if json.Unmarshal(s.Head, &head) == nil {
		h.ID = head.Message.ID
	}
	for i := range s.Blocks {
		b := &s.Blocks[i]
		var sig string
		if err := json.Unmarshal(fmt.Appendf(nil, `"%s"`, b.Signature), &sig); err != nil {
			sig = err.Error()
		}
		k := heardBlock{ID: b.ID, Name: b.Name, Text: string(b.Plain()), Signature: sig, Extras: b.Extras, Closed: b.Closed}
		var raw struct{ Type string }
		if json.Unmarshal(b.Raw, &raw); raw.Type != "" {
			k.Type = raw.Type
		} else {
			k.Type = map[turn.BlockKind]string{turn.Prose: "text", turn.Reasoning: "thinking"}[b.Kind]
		}
		h.Blocks = append(h.Blocks, k)
	}
	return h
}

// TestRecordingsDecodeAsJSON compares every recording with the oracle, the huge ones included.
func TestRecordingsDecodeAsJSON(t *testing.T) {
	req := dialecttest.Parse(t, d, []byte(hello))
	for _, r := range recordings(t) {
		if r.name == "spliced-message-start" {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			got, want := retold(dialecttest.Read(t, d, req, r.stream)), listen(t, r.stream)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got:\n%+v\nwant:\n%+v", got, want)
			}
		})
	}
}

// TestSplicedRecording is vercel/ai#18332: a proxy restarted a broken generation and piped the new one into the same
// response. Two signed thinking blocks in one turn are a permanent 400 in every later request, so the second
// message_start must stop the attempt while what the first generation said is still whole.
func TestSplicedRecording(t *testing.T) {
	for _, r := range recordings(t) {
		if r.name != "spliced-message-start" {
			continue
		}
		deltas, err := dialecttest.Decode(d, nil, dialecttest.Units(r.stream))
		if !errors.Is(err, anthropic.ErrSecondStart) {
			t.Fatalf("err = %v", err)
		}
		s, err := dialecttest.Fold(deltas)
		if err != nil {
			t.Fatal(err)
		}
		want := "block 0 reasoning text=\"I will call the tool.\" signature=\"sig-first\" closed\n" +
			"block 1 call index=1 id=\"toolu_first\" name=\"test-tool\" text=\"{\\\\\\\"value\\\\\\\":\\\\\\\"Spark\" raw=\"{\\\"type\\\":\\\"tool_use\\\",\\\"id\\\":\\\"toolu_first\\\",\\\"name\\\":\\\"test-tool\\\",\\\"input\\\":{}}\"\n" +
			"end 0 unfinished\n"
		if got := dialecttest.Format(s); got != want {
			t.Errorf("got:\n%swant:\n%s", got, want)
		}
	}
}

func TestErrorTypesHaveTheirStatus(t *testing.T) {
	for typ, status := range map[string]int{
		"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
		"not_found_error": 404, "request_too_large": 413, "rate_limit_error": 429, "api_error": 500,
		"timeout_error": 504, "overloaded_error": 529, "error_of_tomorrow": 0,
	} {
		data := fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":"said \u0041"}}`, typ)
		ds, err := d.NewDecoder(nil).Decode(nil, sse.Event{Data: []byte(data)})
		if err != nil || len(ds) != 1 || ds[0].Kind != turn.Fault {
			t.Fatalf("%s: %v %v", typ, ds, err)
		}
		if f := ds[0].Fault; f.Type != typ || f.Status != status || f.Message != "said A" {
			t.Errorf("%s: %+v", typ, *f)
		}
	}
}

func TestStopReasons(t *testing.T) {
	for reason, why := range map[string]turn.Why{
		`"end_turn"`: turn.Stopped, `"stop_sequence"`: turn.Stopped, `"max_tokens"`: turn.Length,
		`"model_context_window_exceeded"`: turn.Length, `"tool_use"`: turn.ToolUse, `"pause_turn"`: turn.Paused,
		`"refusal"`: turn.Filtered, `"compaction"`: turn.OtherEnd, `null`: turn.Unfinished, `""`: turn.Unfinished,
	} {
		data := `{"type":"message_delta","delta":{"stop_reason":` + reason + `},"usage":{"output_tokens":3}}`
		ds, err := d.NewDecoder(nil).Decode(nil, sse.Event{Data: []byte(data)})
		if err != nil {
			t.Fatal(err)
		}
		var s turn.Snapshot
		for _, x := range ds {
			if err := s.Fold(x); err != nil {
				t.Fatal(err)
			}
		}
		if s.End().Why != why || s.Usage.Output != 3 {
			t.Errorf("%s: %v, usage %+v", reason, s.End(), s.Usage)
		}
	}
}

// TestOrdinaryEventsDoNotAllocate covers the deltas that a stream consists of, in both member orders seen in the field.
func TestOrdinaryEventsDoNotAllocate(t *testing.T) {
	dec := d.NewDecoder(nil)
	for i, typ := range []string{"text", "thinking", "tool_use"} {
		start := fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":%q}}`, i, typ)
		if _, err := dec.Decode(nil, sse.Event{Data: []byte(start)}); err != nil {
			t.Fatal(err)
		}
	}
	dst := make([]turn.Delta, 0, 4)
	for _, data := range []string{
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a \"b\" \u00e9"}   }`,
		`{"type":"content_block_delta","index":0,"delta":{"text":"ab","type":"text_delta"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"thinking_delta","thinking":"hm"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"signature_delta","signature":"c2ln"}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\": "}}`,
		`{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}`,
		`{"type": "ping"}`,
		`{"type":"content_block_stop","index":0}`,
	} {
		e := sse.Event{Name: []byte("x"), Data: []byte(data)}
		if n := testing.AllocsPerRun(100, func() {
			if _, err := dec.Decode(dst, e); err != nil {
				t.Error(err)
			}
		}); n != 0 {
			t.Errorf("%v allocations: %s", n, data)
		}
	}
}
