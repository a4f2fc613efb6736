package openairesponses_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3/packages/ssestream"
	sdk "github.com/openai/openai-go/v3/responses"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// read reads a whole stream with the official SDK and its accumulator, and checks the lifecycle that stricter clients
// insist on (WIRE 3.3, FIELD-REPORTS D19). It returns the response of the terminal event.
func read(stream []byte) (*sdk.Response, error) {
	if err := lifecycle(stream); err != nil {
		return nil, err
	}
	res := &http.Response{Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(stream))}
	st := ssestream.NewStream[sdk.ResponseStreamEventUnion](ssestream.NewDecoder(res), nil)
	var acc sdk.ResponseAccumulator
	for st.Next() {
		var e sdk.ResponsesServerEventUnion
		if err := json.Unmarshal([]byte(st.Current().RawJSON()), &e); err != nil {
			return nil, err
		}
		if err := acc.AddEvent(e); err != nil {
			return nil, fmt.Errorf("%w: %s", err, e.RawJSON())
		}
	}
	if err := st.Err(); err != nil {
		return nil, err
	}
	return acc.ReconstructedResponse()
}

type event struct {
	Type        string
	Seq         *int64          `json:"sequence_number"`
	Output      int             `json:"output_index"`
	Content     int             `json:"content_index"`
	Summary     int             `json:"summary_index"`
	ItemID      string          `json:"item_id"`
	Delta, Text string          // of a text
	Arguments   string          // of a done call
	Input       string          // of a done custom call
	Item        json.RawMessage `json:"item"`
	Part        struct{ Text, Refusal string }
	Annotation  json.RawMessage
	Response    struct{ Output []json.RawMessage }
}

// lifecycle checks the order of events, their numbers, and that what done events repeat is what was streamed.
func lifecycle(stream []byte) error {
	var items []string
	said, begun, ended := map[string]string{}, false, false
	next := int64(0)
	done := map[int]json.RawMessage{}
	for _, u := range dialecttest.Units(stream) {
		var e event
		if len(u.Data) == 0 || string(u.Data) == "[DONE]" {
			continue
		}
		if err := json.Unmarshal(u.Data, &e); err != nil {
			return fmt.Errorf("%w: %s", err, u.Data)
		}
		bad := func(format string, a ...any) error { return fmt.Errorf(format+": %s", append(a, u.Data)...) }
		if e.Seq != nil {
			if *e.Seq != next {
				return bad("number %d, want %d", *e.Seq, next)
			}
			next++
		}
		if begun == (e.Type == "response.created") {
			return bad("not one response.created, first")
		}
		begun = true
		if ended {
			return bad("behind the end")
		}
		at := fmt.Sprint(e.Output, "/", e.Content+e.Summary)
		if e.ItemID != "" && (e.Output >= len(items) || items[e.Output] != e.ItemID) {
			return bad("not an event of item %d", e.Output)
		}
		switch _, open := said[at]; {
		case e.Type == "response.output_item.added":
			if e.Output != len(items) {
				return bad("item %d opens at %d", len(items), e.Output)
			}
			items = append(items, idOf(e.Item))
		case strings.HasSuffix(e.Type, "_part.added"):
			if open {
				return bad("the part is open")
			}
			said[at] = e.Part.Text + e.Part.Refusal
		case strings.HasSuffix(e.Type, ".delta") && !strings.Contains(e.Type, "mcp") && !strings.Contains(e.Type, "operation"):
			if done[e.Output] != nil {
				return bad("behind the end of its item")
			}
			said[at] += e.Delta
		case strings.HasSuffix(e.Type, "text.done"), strings.HasSuffix(e.Type, "function_call_arguments.done"), strings.HasSuffix(e.Type, "input.done"):
			if all := e.Text + e.Arguments + e.Input; said[at] != all {
				return bad("streamed was %q", said[at])
			}
		case strings.HasSuffix(e.Type, "_part.done"):
			if all := e.Part.Text + e.Part.Refusal; said[at] != all {
				return bad("streamed was %q", said[at])
			}
		case e.Type == "response.output_item.done":
			if done[e.Output] != nil || idOf(e.Item) != items[e.Output] {
				return bad("no end of item %d", e.Output)
			}
			done[e.Output] = bytes.Clone(e.Item)
		case e.Type == "response.completed", e.Type == "response.incomplete":
			ended = true
			if len(e.Response.Output) != len(done) {
				return bad("%d items ended", len(done))
			}
			for i, it := range e.Response.Output {
				if done[i] != nil && !equal(it, done[i]) {
					return bad("item %d ended as %s", i, done[i])
				}
			}
		}
	}
	return nil
}

func idOf(item json.RawMessage) string {
	var it struct{ ID string }
	_ = json.Unmarshal(item, &it) // an item that is none has no id
	return it.ID
}

func equal(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// Whatever is missing of a response, the attempt that says it again makes it whole for the strictest client: cut behind
// every event of every composed turn.
func TestARepeatedResponseIsReadAsOne(t *testing.T) {
	for _, c := range dialecttest.Golden(t, d, "testdata") {
		if c.Name == "length" || c.Name == "bare" {
			continue // its call is cut, and the SDK says so; its events have no item ids
		}
		t.Run(c.Name, func(t *testing.T) {
			req := dialecttest.Parse(t, d, c.Request)
			want, err := read(c.Stream)
			if err != nil {
				t.Fatalf("the composed stream: %v", err)
			}
			units := dialecttest.Units(c.Stream)
			again := dialecttest.Units(bytes.ReplaceAll(c.Stream, []byte("resp_composed"), []byte("resp_again")))
			for k := 1; k < len(units); k++ {
				client, err := dialecttest.Rejoin(d, req, units[:k], again)
				if err != nil {
					t.Fatalf("cut at %d: %v", k, err)
				}
				got, err := read(client)
				if err != nil {
					t.Fatalf("cut at %d: %v\n%s", k, err, client)
				}
				if !equal([]byte(got.RawJSON()), []byte(want.RawJSON())) {
					t.Fatalf("cut at %d:\n%s\nwant:\n%s", k, got.RawJSON(), want.RawJSON())
				}
			}
		})
	}
}

// A process that takes a turn over shows a new client what was said: as one response, from its first number on.
func TestAReplayIsReadAsAResponse(t *testing.T) {
	for _, c := range dialecttest.Golden(t, d, "testdata") {
		t.Run(c.Name, func(t *testing.T) {
			req := dialecttest.Parse(t, d, c.Request)
			whole := dialecttest.Read(t, d, req, c.Stream)
			said := whole.Clone()
			for i := range said.Blocks {
				said.Blocks[i].Index = i // as relay counts: one for each block
			}
			said.Ends, said.Terminated, said.Opaques = nil, false, 0
			client := d.Replay(nil, req, said)
			if err := lifecycle(client); err != nil {
				t.Fatalf("%v\n%s", err, client)
			}
			got := dialecttest.Read(t, d, req, client)
			if len(got.Blocks) != len(whole.Blocks) {
				t.Fatalf("%s\nwant:\n%s", dialecttest.Format(got), dialecttest.Format(whole))
			}
			for i := range got.Blocks {
				g, w := &got.Blocks[i], &whole.Blocks[i]
				if g.Kind != w.Kind || g.ID != w.ID || g.Index != w.Index || !bytes.Equal(g.Text, w.Text) || !bytes.Equal(g.Signature, w.Signature) || !equal(orNull(g.Raw), orNull(w.Raw)) {
					t.Errorf("block %d:\n%s\nwant:\n%s", i, dialecttest.Format(got), dialecttest.Format(whole))
				}
			}
			if said.Seq != got.Seq {
				t.Errorf("the next number follows %d, the last was %d", said.Seq, got.Seq)
			}
		})
	}
}

// A part of an unknown type is in its message for those who come late, and for those who are told to run the call behind
// it, even if the message did not come to its end.
func TestAnUnknownPartStaysInItsMessage(t *testing.T) {
	where, holo := `"item_id":"msg_A","output_index":0,"content_index":1,"part":`, `{"type":"hologram","data":"x"}`
	first := begin("resp_A").message(0, "msg_A", "Look").
		event("response.content_part.added", where+`{"type":"hologram"}`).event("response.content_part.done", where+holo).
		call(1, "fc_1", `{"a":1}`)
	said := fold(t, string(first.out))
	want := `[{"type":"output_text","annotations":[],"logprobs":[],"text":"Look"},` + holo + `]`
	finished := func(client []byte, said *turn.Snapshot) {
		t.Helper()
		client = d.Finish(client, nil, said, dialect.Ending{Why: turn.ToolUse})
		if err := lifecycle(client); err != nil {
			t.Fatalf("%v\n%s", err, client)
		}
		units := dialecttest.Units(client)
		if got := jsonwalk.Get(units[len(units)-1].Data, "response", "output", "0", "content"); string(got) != want {
			t.Errorf("got  %s\nwant %s\n%s", got, want, client)
		}
		if bytes.Count(client, []byte(`"content_index":1,"part":`+holo)) == 0 {
			t.Errorf("the part is announced nowhere, or elsewhere\n%s", client)
		}
	}
	finished(bytes.Clone(first.out), said.Clone())
	for i := range said.Blocks {
		said.Blocks[i].Index = i // as relay counts: one for each block
	}
	finished(d.Replay(nil, dialecttest.Parse(t, d, []byte(hello)), said), said)
}

func orNull(raw []byte) []byte {
	if len(raw) == 0 {
		return []byte("null")
	}
	return raw
}

// fold returns the snapshot of a stream.
func fold(t *testing.T, stream string) *turn.Snapshot {
	t.Helper()
	return dialecttest.Read(t, d, dialecttest.Parse(t, d, []byte(hello)), []byte(stream))
}
