package completions

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/turn"
)

// read is what the official Go SDK gives an application.
type read struct {
	id, text, finish string
	finishes         int
	in, out          int64
}

func readSDK(stream []byte) (read, error) {
	res := &http.Response{Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(stream))}
	s := ssestream.NewStream[openai.Completion](ssestream.NewDecoder(res), nil)
	var r read
	for s.Next() {
		c := s.Current()
		if r.id == "" {
			r.id = c.ID
		}
		if c.ID != r.id || c.Object != "text_completion" {
			r.text += "[another message: " + c.RawJSON() + "]"
		}
		for _, ch := range c.Choices {
			r.text += ch.Text
			if ch.FinishReason != "" {
				r.finish = string(ch.FinishReason)
				r.finishes++
			}
		}
		r.in, r.out = r.in+c.Usage.PromptTokens, r.out+c.Usage.CompletionTokens
	}
	return r, s.Err()
}

func TestSDKReadsASplicedTextAsOne(t *testing.T) {
	d := Dialect{}
	for _, c := range dialecttest.Golden(t, d, "testdata") {
		if c.Name != "text-with-usage" && c.Name != "suffix" && c.Name != "llama-cpp-timings" {
			continue
		}
		r := dialecttest.Parse(t, d, c.Request)
		units := dialecttest.Units(c.Stream)
		again := dialecttest.Units(bytes.ReplaceAll(c.Stream, []byte("cmpl-A1"), []byte("cmpl-B2")))
		want, err := readSDK(c.Stream)
		if err != nil || want.finishes != 1 {
			t.Fatalf("uncut: %+v %v", want, err)
		}
		if !r.IncludeUsage {
			want.in, want.out = 0, 0
		}
		for k := 1; k < len(units)-1; k++ {
			client, err := dialecttest.Rejoin(d, r, units[:k], again)
			if err != nil {
				t.Fatal(err)
			}
			got, err := readSDK(client)
			if err != nil {
				t.Fatal(err)
			}
			if !r.IncludeUsage {
				got.in, got.out = 0, 0 // what the host counts unasked is its own affair
			}
			if got != want {
				t.Errorf("%s cut at %d: the SDK reads %+v, want %+v\n%s", c.Name, k, got, want, client)
			}
		}
	}
}

func TestSDKReadsWhatWeRender(t *testing.T) {
	d := Dialect{}
	r := dialecttest.Parse(t, d, []byte(`{"prompt":"a","stream":true,"stream_options":{"include_usage":true}}`))
	said := saying(`Hi \"there\"`)
	stream := d.Replay(nil, r, said)
	stream = d.Heartbeat(stream, r, said)
	stream = d.Finish(stream, r, said, dialect.Ending{Why: turn.Length, Usage: turn.Usage{Known: true, Input: 5, Output: 6}})
	got, err := readSDK(stream)
	if want := (read{"cmpl-A1", `Hi "there"`, "length", 1, 5, 6}); err != nil || got != want {
		t.Errorf("the SDK reads %+v, %v; want %+v\n%s", got, err, want, stream)
	}
	empty := d.Replay(nil, r, &turn.Snapshot{Head: said.Head})
	if got, err := readSDK(empty); err != nil || got.text != "" || got.id != "cmpl-A1" {
		t.Errorf("nothing said: %+v, %v\n%s", got, err, empty)
	}
}

func TestSDKRaisesOnAFailure(t *testing.T) {
	d := Dialect{}
	stream := d.Replay(nil, dialecttest.Parse(t, d, []byte(`{"prompt":"a"}`)), saying("Hi"))
	stream = d.Fail(stream, saying("Hi"), dialect.Failure{Type: "overloaded", Message: "busy", Cause: "ConnectionReset", Reason: "budget"})
	got, err := readSDK(stream)
	if err == nil || !strings.Contains(err.Error(), "busy") || got.text != "Hi" {
		t.Errorf("the SDK raised %v behind %q", err, got.text)
	}
}
