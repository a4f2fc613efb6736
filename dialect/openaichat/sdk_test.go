package openaichat

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

// readSDK reads a stream with the official Go SDK, whose accumulator rejects a
// chunk of another id and doubles a tool name that is sent twice (WIRE 3.1).
func readSDK(t *testing.T, stream []byte) (*openai.ChatCompletionAccumulator, error) {
	t.Helper()
	res := &http.Response{Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(stream))}
	s := ssestream.NewStream[openai.ChatCompletionChunk](ssestream.NewDecoder(res), nil)
	acc := new(openai.ChatCompletionAccumulator)
	for s.Next() {
		if !acc.AddChunk(s.Current()) {
			t.Fatalf("the SDK rejects a chunk: %s", s.Current().RawJSON())
		}
	}
	return acc, s.Err()
}

var sdkCases = []string{"text-with-usage", "text-then-parallel-calls", "openrouter-role-in-every-chunk", "refusal", "id-and-name-repeated", "calls-opened-before-filled"}

func TestSDKReadsASplicedMessageAsOne(t *testing.T) {
	for _, c := range dialecttest.Golden(t, Dialect{}, "testdata") {
		for _, name := range sdkCases {
			if c.Name != name {
				continue
			}
			t.Run(name, func(t *testing.T) { sdkReads(t, c) })
		}
	}
}

func sdkReads(t *testing.T, c dialecttest.Case) {
	d, r := Dialect{}, dialecttest.Parse(t, Dialect{}, c.Request)
	whole := dialecttest.Read(t, d, r, c.Stream)
	want := plainOf(whole)
	units := dialecttest.Units(c.Stream)
	again := dialecttest.Units(bytes.ReplaceAll(c.Stream, []byte("chatcmpl-A1"), []byte("chatcmpl-B2")))
	for k := range units {
		said, err := dialecttest.Decode(d, r, units[:k])
		if err != nil {
			t.Fatal(err)
		}
		if s, err := dialecttest.Fold(said); err != nil || s.Head == nil || s.Finished() {
			continue // the first message of all, or nothing to continue
		}
		client, err := dialecttest.Rejoin(d, r, units[:k], again)
		if err != nil {
			t.Fatal(err)
		}
		acc, err := readSDK(t, client)
		if err != nil {
			t.Fatalf("cut at %d: %v", k, err)
		}
		choice := acc.Choices[0]
		if acc.ID != "chatcmpl-A1" || choice.Message.Content != want.content || choice.Message.Refusal != want.refusal || choice.FinishReason != want.finish {
			t.Errorf("cut at %d: the SDK reads %q %q %q", k, acc.ID, choice.Message.Content, choice.FinishReason)
		}
		if len(choice.Message.ToolCalls) != len(want.calls) {
			t.Fatalf("cut at %d: %d calls", k, len(choice.Message.ToolCalls))
		}
		for i, w := range want.calls {
			got := choice.Message.ToolCalls[i]
			// The stream itself may repeat a name; the splice never adds one.
			if got.ID != w.id || got.Function.Arguments != w.args || c.Name != "id-and-name-repeated" && got.Function.Name != w.name {
				t.Errorf("cut at %d: call %d is %s %s %s", k, i, got.ID, got.Function.Name, got.Function.Arguments)
			}
		}
		if r.IncludeUsage && (acc.Usage.PromptTokens != want.in || acc.Usage.CompletionTokens != want.out) {
			t.Errorf("cut at %d: usage %d %d", k, acc.Usage.PromptTokens, acc.Usage.CompletionTokens)
		}
	}
}

func TestSDKReadsWhatWeRender(t *testing.T) {
	d, r := Dialect{}, request(t)
	said := spoken("Hi there")
	said.Blocks = append(said.Blocks,
		turn.Block{Kind: turn.Call, ID: "a", Name: "f", Text: []byte(`{\"q\":1}`), Closed: true},
		turn.Block{Kind: turn.Call, Index: 1, ID: "b", Name: "g", Closed: true})
	var stream []byte
	for n := range said.Blocks {
		stream = d.Heartbeat(d.Emit(stream, r, said, n), r, said)
	}
	stream = d.Finish(stream, r, said, dialect.Ending{Why: turn.ToolUse, Usage: turn.Usage{Known: true, Input: 5, Output: 6}})
	acc, err := readSDK(t, stream)
	if err != nil {
		t.Fatal(err)
	}
	c := acc.Choices[0]
	if c.Message.Content != "Hi there" || c.FinishReason != "tool_calls" || acc.Usage.TotalTokens != 11 || len(c.Message.ToolCalls) != 2 ||
		c.Message.ToolCalls[0].Function.Arguments != `{"q":1}` || c.Message.ToolCalls[1].Function.Arguments != "{}" || c.Message.ToolCalls[1].ID != "b" {
		t.Errorf("the SDK reads %+v", c)
	}
}

func TestSDKRaisesOnAFailure(t *testing.T) {
	d := Dialect{}
	stream := d.Emit(nil, request(t), spoken("Hi"), 0)
	stream = d.Fail(stream, spoken("Hi"), dialect.Failure{Type: "overloaded", Message: "busy", Cause: "ConnectionReset", Reason: "budget"})
	acc, err := readSDK(t, stream)
	if err == nil || !strings.Contains(err.Error(), "busy") {
		t.Errorf("the SDK raised %v", err)
	}
	if acc.Choices[0].Message.Content != "Hi" {
		t.Errorf("what was said before: %q", acc.Choices[0].Message.Content)
	}
}
