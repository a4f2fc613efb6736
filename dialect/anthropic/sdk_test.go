package anthropic_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
)

// receive reads a stream as a user of the official SDK does and returns the accumulated message, or the error that the
// user sees.
func receive(stream []byte) (sdk.Message, error) {
	res := &http.Response{Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(stream))}
	s := ssestream.NewStream[sdk.MessageStreamEventUnion](ssestream.NewDecoder(res), nil)
	var m sdk.Message
	for s.Next() {
		if err := m.Accumulate(s.Current()); err != nil {
			return m, err
		}
	}
	return m, s.Err()
}

// told is what a caller works with of a message.
func told(t *testing.T, m sdk.Message) string {
	t.Helper()
	type block struct {
		Type, ID, Name, Text, Thinking, Signature, Data string
		Input                                           json.RawMessage `json:",omitempty"`
		Citations                                       int
	}
	var out struct {
		ID, Model     string
		Stop, Seq     string
		Input, Output int64
		Content       []block
	}
	out.ID, out.Model, out.Stop, out.Seq = m.ID, string(m.Model), string(m.StopReason), m.StopSequence
	out.Input, out.Output = m.Usage.InputTokens, m.Usage.OutputTokens
	for _, b := range m.Content {
		input := b.Input
		if !json.Valid(input) {
			input = nil // the SDK keeps the fragment of a call that the limit cut until message_stop
		}
		out.Content = append(out.Content, block{b.Type, b.ID, b.Name, b.Text, b.Thinking, b.Signature, b.Data, input, len(b.Citations)})
	}
	j, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(j)
}

// mustReceive is receive for a stream that has to be one legal message.
func mustReceive(t *testing.T, stream []byte) sdk.Message {
	t.Helper()
	m, err := receive(stream)
	if err != nil {
		t.Fatalf("sdk: %v\n%s", err, stream)
	}
	return m
}

// TestSplicedStreamsReadAsOneMessage cuts every recording behind every event, lets the same turn come again under
// another id and index base, and asks the SDK whether it can tell.
func TestSplicedStreamsReadAsOneMessage(t *testing.T) {
	req := dialecttest.Parse(t, d, []byte(hello))
	for _, r := range recordings(t) {
		if r.name == "spliced-message-start" || len(r.stream) > 20<<10 {
			continue
		}
		t.Run(r.name, func(t *testing.T) {
			var whole []byte
			units := dialecttest.Units(r.stream)
			for _, e := range units { // The SDK drops a last event without its blank line (FIELD-REPORTS A5).
				whole = e.Reframe(whole)
			}
			want := told(t, mustReceive(t, whole))
			for k := 1; k < len(units); k++ {
				client, err := dialecttest.Rejoin(d, req, units[:k], units)
				if err != nil {
					t.Fatal(err)
				}
				if got := told(t, mustReceive(t, client)); got != want {
					t.Fatalf("cut at %d\ngot:\n%s\nwant:\n%s", k, got, want)
				}
			}
		})
	}
}
