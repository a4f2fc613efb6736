package openaichat

import (
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

const textChunk = `{"id":"chatcmpl-A1","object":"chat.completion.chunk","created":1700000000,"model":"gpt-4o-mini-2024-07-18","service_tier":"default","system_fingerprint":"fp_d0469e1700","choices":[{"index":0,"delta":{"content":" capital"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"C63rqfQVOw"}`

const callChunk = `{"id":"chatcmpl-A1","object":"chat.completion.chunk","created":1700000000,"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"country"}}]},"logprobs":null,"finish_reason":null}],"usage":null}`

// primed returns a decoder that has decoded the units of stream.
func primed(t testing.TB, stream ...string) *Decoder {
	t.Helper()
	d := new(Decoder)
	for _, data := range stream {
		if _, err := d.Decode(nil, sse.Event{Data: []byte(data)}); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

const callOpening = `{"id":"chatcmpl-A1","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{\""}}]}}]}`

func TestOrdinaryEventsDecodeWithoutAllocation(t *testing.T) {
	for name, c := range map[string]struct {
		dec  *Decoder
		data string
	}{
		"text":             {primed(t, textChunk), textChunk},
		"arguments":        {primed(t, callOpening), callChunk},
		"reasoning":        {primed(t, `{"choices":[{"index":0,"delta":{"reasoning":"a"}}]}`), `{"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning":" b","reasoning_details":[{"type":"reasoning.text","text":" b"}]}}]}`},
		"running usage":    {primed(t, textChunk), `{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`},
		"two choices":      {primed(t, textChunk, `{"choices":[{"index":1,"delta":{"content":"a"}}]}`), `{"choices":[{"index":1,"delta":{"content":"a"}}]}`},
		"nothing":          {primed(t, textChunk), `{"choices":[]}`},
		"the end":          {primed(t, textChunk), `[DONE]`},
		"parts of content": {primed(t, `{"choices":[{"delta":{"content":[{"type":"text","text":"a"}]}}]}`), `{"choices":[{"delta":{"content":[{"type":"text","text":"a"}]}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			dst := make([]turn.Delta, 0, 8)
			e := sse.Event{Data: []byte(c.data)}
			if n := testing.AllocsPerRun(100, func() {
				if _, err := c.dec.Decode(dst, e); err != nil {
					t.Error(err)
				}
			}); n != 0 {
				t.Errorf("%v allocations", n)
			}
		})
	}
}

// The first half of the chunk opened a block that nobody heard of; the close of
// that block must not be told either.
func TestAChunkThatBreaksOffLosesTheRest(t *testing.T) {
	d := primed(t, textChunk)
	half := sse.Event{Data: []byte(`{"choices":[{"index":0,"delta":{"reasoning":"a"}},{"index":-1}]}`)}
	if ds, err := d.Decode(nil, half); err != ErrChoice || len(ds) != 0 {
		t.Fatalf("%v %v", ds, err)
	}
	if ds, err := d.Decode(nil, sse.Event{Data: []byte(textChunk)}); err != ErrChoice || len(ds) != 0 {
		t.Errorf("%v %v", ds, err)
	}
	if ds, err := d.Decode(nil, sse.Event{Data: []byte("[DONE]")}); err != nil || ds[0].Kind != turn.Terminal {
		t.Errorf("%v %v", ds, err)
	}
}

// Older llama.cpp builds report errors as an "error: {…}" line that is no event.
func TestErrorLineOfLlamaCpp(t *testing.T) {
	e := dialecttest.Units([]byte(`error: {"code":500,"message":"slot unavailable","type":"server_error"}` + "\n\n"))[0]
	ds, err := new(Decoder).Decode(nil, e)
	if err != nil || len(ds) != 1 || ds[0].Kind != turn.Fault {
		t.Fatalf("%v %v", ds, err)
	}
	if f := ds[0].Fault; f.Status != 500 || f.Type != "server_error" || f.Message != "slot unavailable" {
		t.Errorf("%+v", *f)
	}
}

func TestFaultsInEveryShape(t *testing.T) {
	for _, c := range []struct {
		name, event, data string
		want              turn.WireFault
	}{
		{"an object", "", `{"error":{"message":"m","type":"t","param":null,"code":"c"}}`, turn.WireFault{Message: "m", Type: "t", Code: "c"}},
		{"a numeric code is a status", "", `{"error":{"message":"m","code":429}}`, turn.WireFault{Message: "m", Code: "429", Status: 429}},
		{"Groq's status_code", "error", `{"error":{"message":"m","code":"tool_use_failed","status_code":400}}`, turn.WireFault{Message: "m", Code: "tool_use_failed", Status: 400}},
		{"a string", "", `{"error":"busy"}`, turn.WireFault{Message: "busy"}},
		{"an empty object", "", `{"error":{}}`, turn.WireFault{}},
		{"fields at the top", "error", `{"message":"m","type":"t","code":503}`, turn.WireFault{Message: "m", Type: "t", Code: "503", Status: 503}},
		{"a detail", "error", `{"detail":"gone"}`, turn.WireFault{Message: "gone"}},
		{"words", "error", `upstream closed`, turn.WireFault{Message: "upstream closed"}},
		{"nothing", "error", ``, turn.WireFault{}},
		{"vLLM's object", "", `{"object":"error","message":"m","type":"BadRequestError","code":400}`, turn.WireFault{Message: "m", Type: "BadRequestError", Code: "400", Status: 400}},
		{"with a finish", "", `{"choices":[{"index":0,"delta":{},"finish_reason":"error"}],"error":{"code":502,"message":"m"}}`, turn.WireFault{Message: "m", Code: "502", Status: 502}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var name []byte
			if c.event != "" {
				name = []byte(c.event)
			}
			ds, err := new(Decoder).Decode(nil, sse.Event{Name: name, Data: []byte(c.data)})
			if err != nil || len(ds) == 0 {
				t.Fatalf("%v %v", ds, err)
			}
			last := ds[len(ds)-1]
			if last.Kind != turn.Fault || *last.Fault != c.want {
				t.Errorf("got %s", dialecttest.FormatDelta(last))
			}
			for _, d := range ds {
				if d.Kind == turn.Finish {
					t.Error("an error that finishes")
				}
			}
		})
	}
	for _, data := range []string{`{"choices":[],"error":null}`, `{"choices":[],"error":false}`, `{"choices":[],"error":""}`} {
		ds, err := new(Decoder).Decode(nil, sse.Event{Data: []byte(data)})
		if err != nil || len(ds) != 1 || ds[0].Kind != turn.Pulse {
			t.Errorf("%s is no error: %v %v", data, ds, err)
		}
	}
}

func benchmarkDecode(b *testing.B, dec *Decoder, data string) {
	dst := make([]turn.Delta, 0, 8)
	e := sse.Event{Data: []byte(data)}
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := dec.Decode(dst, e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeText(b *testing.B)      { benchmarkDecode(b, primed(b, textChunk), textChunk) }
func BenchmarkDecodeArguments(b *testing.B) { benchmarkDecode(b, primed(b, callOpening), callChunk) }

func BenchmarkRewriteText(b *testing.B) {
	r := request(b)
	e := sse.Event{Data: []byte(textChunk)}
	said := spoken("The")
	ds, err := primed(b, textChunk).Decode(nil, e)
	if err != nil {
		b.Fatal(err)
	}
	var dst []byte
	b.ReportAllocs()
	for b.Loop() {
		if dst = (Dialect{}).Rewrite(dst[:0], r, e, ds, said); len(dst) == 0 {
			b.Fatal("nothing rendered")
		}
	}
}
