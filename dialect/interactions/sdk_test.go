package interactions

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/genai"
	sdk "google.golang.org/genai/interactions/models/interactions"
	"google.golang.org/genai/interactions/models/operations"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// plainTurn is a turn as an application reads it.
type plainTurn struct {
	text, thoughts, signature string
	calls                     []string
	status, id                string
}

func (p plainTurn) String() string {
	return fmt.Sprintf("%q %q %q %q %q %q", p.text, p.thoughts, p.signature, p.calls, p.status, p.id)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// readSDK reads a stream with the Interactions client of google.golang.org/genai,
// which takes an end without [DONE] for a broken stream.
func readSDK(t *testing.T, stream []byte) (p plainTurn, err error) {
	t.Helper()
	client, err := genai.NewClient(context.Background(), &genai.ClientConfig{APIKey: "k", Backend: genai.BackendGeminiAPI,
		HTTPClient: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(stream))}, nil
		})}})
	if err != nil {
		t.Fatal(err)
	}
	yes, input := true, sdk.NewInteractionsInput("x")
	res, err := client.Interactions.Create(context.Background(), operations.CreateInteractionRequest{
		Body: operations.NewCreateInteractionRequestBody(sdk.CreateModelInteraction{Model: "gemini-3-pro", Stream: &yes, Input: &input}),
	}, operations.WithAutomaticContinuation(false))
	if err != nil {
		return p, err
	}
	events := res.InteractionSSEStreamEvent
	defer events.Close()
	names := map[int]string{}
	args := map[int]string{}
	var order []int
	for events.Next() {
		e := events.Value().GetData()
		switch {
		case e.InteractionCreatedEvent != nil:
			if p.id != "" {
				t.Errorf("a second interaction.created")
			}
			p.id = e.InteractionCreatedEvent.Interaction.ID
		case e.InteractionCompletedEvent != nil:
			p.status = string(e.InteractionCompletedEvent.Interaction.Status)
			if id := e.InteractionCompletedEvent.Interaction.ID; id != p.id {
				t.Errorf("completes %q, began %q", id, p.id)
			}
		case e.ErrorEvent != nil:
			return p, fmt.Errorf("error event: %s", *e.ErrorEvent.Error.Message)
		case e.StepStart != nil && e.StepStart.Step.FunctionCallStep != nil:
			names[e.StepStart.Index] = e.StepStart.Step.FunctionCallStep.Name
			order = append(order, e.StepStart.Index)
		case e.StepDelta != nil:
			d := e.StepDelta.Delta
			switch {
			case d.TextDelta != nil:
				p.text += d.TextDelta.Text
			case d.ArgumentsDelta != nil && d.ArgumentsDelta.Arguments != nil:
				args[e.StepDelta.Index] += *d.ArgumentsDelta.Arguments
			case d.ThoughtSummaryDelta != nil:
				p.thoughts += d.ThoughtSummaryDelta.Content.TextContent.Text
			case d.ThoughtSignatureDelta != nil && d.ThoughtSignatureDelta.Signature != nil:
				p.signature += *d.ThoughtSignatureDelta.Signature
			}
		}
	}
	for _, i := range order {
		p.calls = append(p.calls, names[i]+args[i])
	}
	return p, events.Err()
}

// plainOf is the same view of a snapshot.
func plainOf(s *turn.Snapshot) plainTurn {
	p := plainTurn{status: s.End().Reason}
	var head struct{ Interaction struct{ ID string } }
	if json.Unmarshal(s.Head, &head) == nil {
		p.id = head.Interaction.ID
	}
	for i := range s.Blocks {
		switch b := &s.Blocks[i]; b.Kind {
		case turn.Prose:
			p.text += string(b.Plain())
		case turn.Reasoning:
			p.thoughts += string(b.Plain())
			p.signature += string(b.Signature)
		case turn.Call:
			p.calls = append(p.calls, b.Name+string(b.Plain()))
		}
	}
	return p
}

func recordings(t *testing.T) map[string][]byte {
	t.Helper()
	root := os.Getenv("UNBROKEN_CORPUS")
	if root == "" {
		root = filepath.Join("..", "..", "..", "shared", "corpus")
	}
	if _, err := os.Stat(root); err != nil {
		t.Skip("no corpus of recorded streams: set UNBROKEN_CORPUS")
	}
	files, err := filepath.Glob(filepath.Join(root, "gemini-interactions", "*"))
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
				var e struct {
					Type string `json:"event_type"`
				}
				if err := json.Unmarshal(line, &e); err != nil {
					t.Fatal(err)
				}
				stream = sse.Append(stream, e.Type, bytes.TrimSpace(line))
			}
			out[filepath.Base(f)] = sse.Append(stream, "done", []byte("[DONE]"))
		}
	}
	return out
}

func TestRecordedStreamsReadAsTheSDKReadsThem(t *testing.T) {
	var cases []dialecttest.Case
	for name, stream := range recordings(t) {
		s := dialecttest.Read(t, Dialect{}, request(t), stream)
		want, err := readSDK(t, stream)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := plainOf(s); got.String() != want.String() || !s.Finished() || !s.Terminated || s.Opaques != 0 {
			t.Errorf("%s: got\n%v\nwant\n%v\n%s", name, got, want, dialecttest.Format(s))
		}
		if !s.Usage.Known || s.Usage.Output == 0 {
			t.Errorf("%s: usage %+v", name, s.Usage)
		}
		cases = append(cases, dialecttest.Case{Name: name, Request: []byte(requestJSON), Stream: stream, ID: want.id})
	}
	dialecttest.Run(t, Dialect{}, cases)
}

// Two thoughts and two texts, cut everywhere and repeated under another id.
func TestSDKReadsASplicedMessageAsOne(t *testing.T) {
	for _, c := range dialecttest.Golden(t, Dialect{}, "testdata") {
		switch c.Name {
		case "broken", "error", "unknown", "hosted-search":
			continue
		}
		d, r := Dialect{}, dialecttest.Parse(t, Dialect{}, c.Request)
		if !bytes.Contains(c.Stream, []byte("[DONE]")) {
			c.Stream = append(c.Stream, "event: done\ndata: [DONE]\n\n"...)
		}
		want, err := readSDK(t, c.Stream)
		if err != nil {
			t.Fatal(err)
		}
		units := dialecttest.Units(c.Stream)
		again := dialecttest.Units(bytes.ReplaceAll(c.Stream, []byte("int-A1"), []byte("int-B2")))
		for k := 1; k < len(units); k++ {
			client, err := dialecttest.Rejoin(d, r, units[:k], again)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := readSDK(t, client); err != nil || got.String() != want.String() {
				t.Errorf("%s cut at %d: the SDK reads\n%v, %v\nwant\n%v\n%s", c.Name, k, got, err, want, client)
			}
		}
	}
}

func TestSDKReadsWhatWeRender(t *testing.T) {
	d, r := Dialect{}, request(t)
	for _, c := range dialecttest.Golden(t, Dialect{}, "testdata") {
		whole := dialecttest.Read(t, d, r, readable(c))
		if !whole.Finished() || c.Name == "unknown" || c.Name == "hosted-search" {
			continue
		}
		stream := d.Heartbeat(d.Replay(nil, r, whole), r, whole)
		stream = d.Finish(stream, r, whole, dialect.Ending{Why: whole.End().Why, Reason: whole.End().Reason, Usage: whole.Usage})
		got, err := readSDK(t, stream)
		if want := plainOf(whole); err != nil || got.String() != want.String() {
			t.Errorf("%s: the SDK reads\n%v, %v\nwant\n%v\n%s", c.Name, got, err, want, stream)
		}
	}
	if _, err := readSDK(t, d.Fail(nil, &turn.Snapshot{}, dialect.Failure{Message: "busy"})); err == nil || !strings.Contains(err.Error(), "busy") {
		t.Errorf("a failure reads as %v", err)
	}
}

// readable is a case without what no decoder reads.
func readable(c dialecttest.Case) []byte {
	if c.Name == "broken" {
		return nil
	}
	return c.Stream
}
