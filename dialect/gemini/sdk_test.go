package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/genai"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/turn"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// readSDK reads a stream with google.golang.org/genai, which throws on comments, on
// `event:` lines and on a mixture of framings (WIRE 3.4), and returns the turn it
// made of it. Vertex is the backend that knows partial arguments.
func readSDK(t testing.TB, stream []byte) (p plainTurn, responses int, err error) {
	t.Helper()
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{
		Backend: genai.BackendVertexAI, Project: "p", Location: "l",
		HTTPClient: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: 200,
				Header:     http.Header{"Content-Type": {"text/event-stream"}},
				Body:       io.NopCloser(bytes.NewReader(stream)),
			}, nil
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	off := false
	config := &genai.GenerateContentConfig{AutomaticContinuation: &off}
	for r, err := range client.Models.GenerateContentStream(context.Background(), "gemini-3-pro", genai.Text("x"), config) {
		if err != nil {
			return p, responses, err
		}
		responses++
		if r.ResponseID != "" && r.ResponseID != "resp-A1" && r.ResponseID != "A" {
			t.Errorf("the SDK sees a response %q", r.ResponseID)
		}
		if u := r.UsageMetadata; u != nil && u.TotalTokenCount > 0 {
			p.in, p.out = int64(u.PromptTokenCount+u.ToolUsePromptTokenCount), int64(u.CandidatesTokenCount+u.ThoughtsTokenCount)
		}
		for _, c := range r.Candidates {
			if c.FinishReason != "" {
				if p.finish != "" && c.Index == 0 {
					t.Errorf("a second finish: %s, %s", p.finish, c.FinishReason)
				}
				p.finish = string(c.FinishReason)
			}
			if c.Content == nil {
				continue
			}
			for _, part := range c.Content.Parts {
				if part.Thought {
					p.thoughts += part.Text
				} else {
					p.text += part.Text
				}
				if len(part.ThoughtSignature) > 0 {
					p.signatures = append(p.signatures, string(part.ThoughtSignature))
				}
				if f := part.FunctionCall; f != nil && f.Args != nil {
					p.calls = append(p.calls, f.Name+canonical(f.Args))
				}
				if part.ExecutableCode != nil {
					p.hosted = append(p.hosted, part.ExecutableCode.Code)
				}
				if part.CodeExecutionResult != nil {
					p.hosted = append(p.hosted, part.CodeExecutionResult.Output)
				}
			}
		}
	}
	return p, responses, nil
}

var sdkCases = []string{"text", "text-lf", "thoughts", "signed-parts", "parallel-calls", "call-and-finish", "code-execution", "grounding", "streamed-arguments", "safety"}

func TestSDKReadsASplicedMessageAsOne(t *testing.T) {
	for _, c := range dialecttest.Golden(t, Dialect{}, "testdata") {
		for _, name := range sdkCases {
			if c.Name == name {
				t.Run(name, func(t *testing.T) { sdkReads(t, c) })
			}
		}
	}
}

func sdkReads(t *testing.T, c dialecttest.Case) {
	d, r := Dialect{}, dialecttest.Parse(t, Dialect{}, c.Request)
	want, _, err := readSDK(t, c.Stream)
	if err != nil {
		t.Fatal(err)
	}
	units := dialecttest.Units(c.Stream)
	again := dialecttest.Units(bytes.ReplaceAll(c.Stream, []byte("resp-A1"), []byte("resp-B2")))
	for k := 1; k < len(units); k++ {
		client, err := dialecttest.Rejoin(d, r, units[:k], again)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := readSDK(t, client)
		if err != nil {
			t.Fatalf("cut at %d: %v\n%s", k, err, client)
		}
		if canonicalTurn(got) != canonicalTurn(want) {
			t.Errorf("cut at %d: the SDK reads\n%+v\nwant\n%+v", k, got, want)
		}
	}
}

func canonicalTurn(p plainTurn) string {
	return strings.Join([]string{p.text, p.thoughts, p.finish, canonical(p.signatures), canonical(p.calls), canonical(p.hosted), canonical([]int64{p.in, p.out})}, "|")
}

// genai for Go looks for LF LF before CR LF CR LF: one event of ours in the other
// framing swallows the events around it when they share a read.
func TestEverythingOursIsFramedLikeTheClientsStream(t *testing.T) {
	d, r := Dialect{}, request(t)
	for name, eol := range map[string]string{"crlf": "\r\n", "lf": "\n"} {
		t.Run(name, func(t *testing.T) {
			stream := []byte("data: " + parts(`{"text":"Hi "}`) + eol + eol)
			s := dialecttest.Read(t, d, r, stream)
			stream = d.Heartbeat(stream, r, s)
			fold(t, s, turn.Delta{Kind: turn.Open, Of: turn.Call, Block: 1, ID: []byte("a"), Name: []byte("f"), Text: []byte(`{\"q\":1}`)},
				turn.Delta{Kind: turn.Open, Of: turn.Call, Block: 2, Index: 1, Name: []byte("g")}, turn.Delta{Kind: turn.Close, Block: 2})
			for n := 1; n < len(s.Blocks); n++ {
				stream = d.Emit(stream, r, s, n)
			}
			stream = append(stream, "data: "+parts(`{"text":"there"}`)+eol+eol...)
			stream = d.Finish(stream, r, s, dialect.Ending{Why: turn.ToolUse, Usage: turn.Usage{Known: true, Input: 5, Output: 6}})
			p, _, err := readSDK(t, stream)
			if err != nil {
				t.Fatalf("%v\n%s", err, stream)
			}
			if p.text != "Hi there" || p.finish != "STOP" || canonical(p.calls) != `["f{\"q\":1}","g{}"]` || p.in != 5 || p.out != 6 {
				t.Errorf("the SDK reads %+v", p)
			}
			if odd := bytes.Count(stream, []byte("\n")) - bytes.Count(stream, []byte(eol)); odd != 0 {
				t.Errorf("%d line ends of another kind", odd)
			}
		})
	}
}

// Before the first event of the provider nobody knows how its lines end.
func TestHeartbeatsInFrontOfTheHeadGoWithEitherFraming(t *testing.T) {
	for name, eol := range map[string]string{"crlf": "\r\n", "lf": "\n"} {
		stream := Dialect{}.Heartbeat(Dialect{}.Heartbeat(nil, nil, &turn.Snapshot{}), nil, &turn.Snapshot{})
		stream = append(stream, "data: "+parts(`{"text":"Hi"}`)+eol+eol+"data: "+parts(`{"text":" there"}`)+eol+eol...)
		if p, n, err := readSDK(t, stream); err != nil || p.text != "Hi there" || n != 4 {
			t.Errorf("%s: the SDK reads %q in %d events, %v", name, p.text, n, err)
		}
	}
}

func TestSDKRaisesOnAFailure(t *testing.T) {
	d, s := Dialect{}, said(t, parts(`{"text":"Hi"}`))
	for name, f := range map[string]dialect.Failure{
		"ours":               {Status: 503, Message: "busy", Cause: "ConnectionReset", Reason: "budget_spent"},
		"the provider's":     {Raw: []byte(`{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}`)},
		"over several lines": {Raw: []byte("{\n  \"error\": {\n \"code\":503,\"message\":\"busy\",\"status\":\"UNAVAILABLE\"}}")},
	} {
		t.Run(name, func(t *testing.T) {
			stream := d.Fail(data(parts(`{"text":"Hi"}`)), s, f)
			p, _, err := readSDK(t, stream)
			var api genai.APIError
			if !errors.As(err, &api) || api.Code != 503 || api.Status != "UNAVAILABLE" || !strings.Contains(api.Message, "busy") {
				t.Errorf("the SDK raised %v on %s", err, stream)
			}
			if p.text != "Hi" {
				t.Errorf("what was said before: %q", p.text)
			}
		})
	}
}

// DESIGN §5: silence is bridged with nothing that an SDK's history would keep. A
// drip is not even an event; the heartbeat is one that no chat session keeps.
func TestSignsOfLifeLeaveNoTrace(t *testing.T) {
	d, s := Dialect{}, said(t, parts(`{"text":"Hi "}`))
	first, second := data(parts(`{"text":"Hi "}`)), data(parts(`{"text":"there"}`))
	finish := d.Finish(nil, request(t), s, dialect.Ending{Why: turn.Stopped})
	for name, c := range map[string]struct {
		stream []byte
		events int
	}{
		"a drip before an event":     {d.Undrip(d.Drip(d.Drip(d.Drip(first, s, false), s, true), s, true), append(second, finish...), s), 3},
		"a drip before the finish":   {d.Undrip(d.Drip(append(first, second...), s, false), finish, s), 3},
		"a drip before a comment":    {append(d.Undrip(d.Drip(first, s, false), append([]byte{}, second...), s), finish...), 3},
		"a drip as the first thing":  {d.Undrip(d.Drip(nil, s, false), append(append([]byte{}, first...), append(second, finish...)...), s), 3},
		"a heartbeat between events": {append(d.Heartbeat(append([]byte{}, first...), nil, s), append(second, finish...)...), 4},
	} {
		t.Run(name, func(t *testing.T) {
			p, n, err := readSDK(t, c.stream)
			if err != nil || p.text != "Hi there" || p.finish != "STOP" {
				t.Errorf("the SDK reads %+v, %v, of %q", p, err, c.stream)
			}
			if n != c.events {
				t.Errorf("%d events, want %d", n, c.events)
			}
		})
	}
	t.Run("a comment behind a drip is none of the SDK's", func(t *testing.T) {
		got := d.Undrip(d.Drip(nil, s, false), []byte(": hi\n"), s)
		if !bytes.Equal(got, append(d.Heartbeat(nil, nil, s), ": hi\n"...)) {
			t.Errorf("got %q", got)
		}
	})
}

// A chat session of the SDK keeps what it was sent as history and sends it back:
// behind a splice that must be the turn, with the signatures on their calls. Its
// story: the first heartbeat of this dialect was "data: {}", which all SDKs read, and
// which made this one forget the whole turn.
func TestHistoryOfAnSDKChatIsTheTurn(t *testing.T) {
	d, r := Dialect{}, request(t)
	before := data(parts(`{"text":"Let me "}`))
	s := dialecttest.Read(t, d, r, before)
	fold(t, s, turn.Delta{Kind: turn.Open, Of: turn.Call, Block: 1, ID: []byte("a"), Name: []byte("f"), Text: []byte(`{\"q\":1}`),
		Raw: []byte(`{"functionCall":{"name":"f","willContinue":true},"thoughtSignature":"c2ln"}`)})
	stream := d.Heartbeat(before, r, s)
	stream = d.Emit(stream, r, s, 1)
	stream = d.Finish(stream, r, s, dialect.Ending{Why: turn.ToolUse})
	var second []byte
	calls := 0
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{APIKey: "k", Backend: genai.BackendGeminiAPI,
		HTTPClient: &http.Client{Transport: roundTrip(func(q *http.Request) (*http.Response, error) {
			if calls++; calls == 2 {
				second, _ = io.ReadAll(q.Body)
			}
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(stream))}, nil
		})}})
	if err != nil {
		t.Fatal(err)
	}
	chat, err := client.Chats.Create(context.Background(), "gemini-3-pro", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, err := range chat.SendMessageStream(context.Background(), genai.Part{Text: "x"}) {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	var q struct {
		Contents []struct {
			Role  string
			Parts []struct {
				Text, ThoughtSignature string
				FunctionCall           json.RawMessage
			}
		}
	}
	if err := json.Unmarshal(second, &q); err != nil {
		t.Fatal(err)
	}
	text, signature := "", ""
	for _, c := range q.Contents {
		for _, p := range c.Parts {
			if c.Role == "model" {
				text += p.Text
			}
			if p.FunctionCall != nil {
				signature = p.ThoughtSignature
			}
		}
	}
	if text != "Let me " || signature != "c2ln" {
		t.Errorf("the history is %q, signature %q: %s", text, signature, second)
	}
}
