package relay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/openai/openai-go/v3/responses"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/openairesponses"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

var responses = family{
	name:     "responses",
	d:        strictResponses{},
	fallback: `{"model":"gpt-5","stream":true,"input":"go on"}`,
	named: func(p []byte) string {
		s, _ := jsonwalk.String(jsonwalk.Get(p, "type"))
		return string(s)
	},
	folders: []string{"openai-responses"},
	half:    "event: response.output_text.delta\ndata: {\"type\":\"resp",
	fault:   "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"server_error\",\"code\":\"server_error\",\"message\":\"The server had an error\",\"param\":null}}\n\n",
	marker:  "data: [DONE]\n\n",
	ping:    ": keep-alive\n\n",
	render:  relaytest.RenderResponses,
	read:    readResponses,
	strays: map[string]string{
		"openai-responses/openai-error.1.chunks.txt": "the provider itself failed in the recording",
	},
	skip: map[string]string{
		"openai-responses/openai-phase.1.chunks.txt":                      "most deltas were taken out of the recording",
		"openai-responses/background_mode_streaming_starting_after.1.sse": "a stream that was resumed behind its first event",
	},
}

// strictResponses is the dialect, with the refusals of a strict provider: a
// continuation that OpenAI would answer with a 400 fails here. It also tells the
// provider model, which reads messages, what was said.
type strictResponses struct{ openairesponses.Dialect }

func (d strictResponses) Continue(r *dialect.Request, said *turn.Snapshot, c dialect.Continuation) ([]byte, error) {
	body, err := d.Dialect.Continue(r, said, c)
	if err != nil {
		return nil, err
	}
	var q struct {
		Store      *bool
		Background bool
		Input      []struct {
			Type, ID, Role, Status string
			Content                json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, fmt.Errorf("400: %w", err)
	}
	if q.Store == nil || *q.Store || q.Background {
		return nil, fmt.Errorf("a continuation would be kept: %s", body)
	}
	text, question := "", ""
	for i, it := range q.Input {
		switch {
		case it.Type == "reasoning" && (i+1 == len(q.Input) || q.Input[i+1].ID == ""):
			return nil, fmt.Errorf("400: Item %q of type 'reasoning' was provided without its required following item", it.ID)
		case it.Role == "assistant":
			text += wordsOf(it.Content)
		case it.Role == "user" && i == len(q.Input)-1 && c.Manner == turn.Asked:
			question = wordsOf(it.Content)
		}
	}
	last := q.Input[len(q.Input)-1]
	if prefilled := last.Role == "assistant" && last.Status == "in_progress"; c.Manner == turn.Prefill && last.Role == "assistant" && !prefilled {
		return nil, fmt.Errorf("a prefill that no host goes on with: %s", body)
	}
	messages := []map[string]string{{"role": "assistant", "content": text}}
	if question != "" {
		messages = append(messages, map[string]string{"role": "user", "content": question})
	}
	raw, err := json.Marshal(messages)
	return jsonwalk.SetMember(nil, body, "messages", raw), err
}

func wordsOf(content json.RawMessage) string {
	var s string
	if json.Unmarshal(content, &s) == nil {
		return s
	}
	var parts []struct{ Text string }
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		s += p.Text
	}
	return s
}

// readResponses reads a stream with openai-go and its accumulator, as strictly as the
// strictest clients: one created, first; items and parts opened in order and each
// once; numbers that grow; a terminal whose output is what was streamed.
func readResponses(stream []byte) (message, error) {
	r := reader{text: map[[2]int64]string{}, args: map[int64]string{}, ids: map[int64]string{}, ended: map[int64]bool{}, seq: -1}
	// The accumulator knows events by another type, which takes it several times as long as all the rest of a case: it
	// reads every result in full runs, else about every eighth. GitHub Copilot gives the response another id in every
	// event, which it does not take.
	accumulate := (*everyBoundary || len(stream)%8 == 0) && !bytes.Contains(stream, []byte(`"capture-id-`))
	var acc sdk.ResponseAccumulator
	err := eachOpenAI(&responseEvents, stream, func(e sdk.ResponseStreamEventUnion) error {
		if accumulate {
			frame, err := serverEvent(e.RawJSON())
			if err != nil {
				return err
			}
			if err := acc.AddEvent(frame); err != nil {
				return err
			}
		}
		if err := r.event(e); err != nil {
			return fmt.Errorf("%w: %s", err, e.RawJSON())
		}
		return nil
	})
	if err != nil {
		return message{}, err
	}
	return r.message()
}

var (
	responseEvents heard[sdk.ResponseStreamEventUnion]
	serverEvents   heard[sdk.ResponsesServerEventUnion]
)

// serverEvent is an event as the accumulator knows it, which observes events and edits
// none.
func serverEvent(raw string) (sdk.ResponsesServerEventUnion, error) {
	e, _, err := serverEvents.of(raw, func() (e sdk.ResponsesServerEventUnion, more bool, err error) {
		err = json.Unmarshal([]byte(raw), &e)
		return e, true, err
	})
	return e, err
}

type reader struct {
	begun  bool
	seq    int64
	opened int64
	ids    map[int64]string
	text   map[[2]int64]string // by output and content index
	args   map[int64]string
	ended  map[int64]bool
	items  []sdk.ResponseOutputItemUnion // as they ended
	end    *sdk.Response
	typ    string
}

func (r *reader) event(e sdk.ResponseStreamEventUnion) error {
	switch {
	case r.end != nil:
		return fmt.Errorf("event behind the terminal")
	case !r.begun && e.Type != "response.created":
		return fmt.Errorf("the first event is no response.created")
	case e.JSON.SequenceNumber.Valid() && e.SequenceNumber <= r.seq:
		return fmt.Errorf("number %d behind %d", e.SequenceNumber, r.seq)
	}
	r.seq = max(r.seq, e.SequenceNumber)
	// GitHub Copilot gives an item another id in every event.
	if id, ok := r.ids[e.OutputIndex]; ok && e.JSON.ItemID.Valid() && e.ItemID != id && !strings.HasPrefix(e.ItemID, "capture-id") {
		return fmt.Errorf("item %d is %s", e.OutputIndex, id)
	}
	at := [2]int64{e.OutputIndex, e.ContentIndex}
	switch e.Type {
	case "response.created":
		if r.begun {
			return fmt.Errorf("second response.created")
		}
		r.begun = true
	case "response.output_item.added":
		if e.OutputIndex != r.opened {
			return fmt.Errorf("item %d opens at %d", r.opened, e.OutputIndex)
		}
		r.opened++
		r.ids[e.OutputIndex] = e.Item.ID
	case "response.content_part.added":
		if _, ok := r.text[at]; ok || e.OutputIndex >= r.opened || r.ended[e.OutputIndex] {
			return fmt.Errorf("part opens out of order")
		}
		r.text[at] = ""
	case "response.output_text.delta", "response.refusal.delta":
		if _, ok := r.text[at]; !ok || r.ended[e.OutputIndex] {
			return fmt.Errorf("delta without its part")
		}
		r.text[at] += e.Delta
	case "response.output_text.done":
		if r.text[at] != e.Text {
			return fmt.Errorf("done says %q, streamed was %q", e.Text, r.text[at])
		}
	case "response.content_part.done":
		if r.text[at] != e.Part.Text+e.Part.Refusal {
			return fmt.Errorf("part is %q, streamed was %q", e.Part.Text, r.text[at])
		}
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		r.args[e.OutputIndex] += e.Delta
	case "response.function_call_arguments.done":
		if r.args[e.OutputIndex] != e.Arguments {
			return fmt.Errorf("done says %q, streamed was %q", e.Arguments, r.args[e.OutputIndex])
		}
	case "response.output_item.done":
		if r.ended[e.OutputIndex] || e.OutputIndex >= r.opened {
			return fmt.Errorf("item ends out of order")
		}
		r.ended[e.OutputIndex] = true
		r.items = append(r.items, e.Item)
		return r.same(e.OutputIndex, e.Item)
	case "response.completed", "response.incomplete", "response.failed":
		end := e.Response
		r.end, r.typ = &end, e.Type
	}
	return nil
}

// same checks an item against what was streamed of it.
func (r *reader) same(index int64, it sdk.ResponseOutputItemUnion) error {
	switch it.Type {
	case "message":
		for i, c := range it.Content {
			if got := r.text[[2]int64{index, int64(i)}]; got != c.Text+c.Refusal {
				return fmt.Errorf("item %d holds %q, streamed was %q", index, c.Text, got)
			}
		}
	case "function_call":
		if got := r.args[index]; got != it.Arguments.OfString {
			return fmt.Errorf("item %d has arguments %q, streamed was %q", index, it.Arguments.OfString, got)
		}
	case "custom_tool_call":
		if got := r.args[index]; got != it.Input {
			return fmt.Errorf("item %d has input %q, streamed was %q", index, it.Input, got)
		}
	}
	return nil
}

func (r *reader) message() (message, error) {
	if r.end == nil {
		return message{}, fmt.Errorf("no terminal event")
	}
	output := r.end.Output
	if len(output) == 0 {
		output = r.items // as in parallel-tool-call-wrapper
	}
	switch {
	case r.typ == "response.failed":
		return message{}, fmt.Errorf("the response failed")
	case int64(len(output)) != r.opened:
		return message{}, fmt.Errorf("%d items in the output, %d were opened", len(output), r.opened)
	}
	out := message{finish: string(r.end.Status)}
	if r.end.Status == "incomplete" {
		out.finish += ":" + string(r.end.IncompleteDetails.Reason)
	}
	var order []string
	for i, it := range output {
		if !r.ended[int64(i)] {
			return message{}, fmt.Errorf("item %d was not ended", i)
		}
		if err := r.same(int64(i), it); err != nil {
			return message{}, err
		}
		kind := it.Type
		switch it.Type {
		case "message":
			text := ""
			for _, c := range it.Content {
				text += c.Text + c.Refusal
			}
			out.text += text
			kind = "text"
			if n := len(order); n > 0 && order[n-1] == "text" || text == "" {
				continue
			}
		case "function_call":
			if !jsonwalk.Valid([]byte(it.Arguments.OfString)) {
				return message{}, fmt.Errorf("tool %s has cut arguments %q", it.Name, it.Arguments.OfString)
			}
			out.calls = append(out.calls, it.Name+compact(it.Arguments.OfString))
			kind, out.finish = "tool_use", "tool_calls"
		case "custom_tool_call":
			out.calls = append(out.calls, it.Name+it.Input)
			kind, out.finish = "tool_use", "tool_calls"
		case "reasoning":
			continue
		}
		order = append(order, kind)
	}
	out.order = strings.Join(order, ",")
	return out, nil
}

// responsesRecordings are the recordings, mended: one file holds four responses, and
// two lines of another lack their last brace.
func responsesRecordings(t *testing.T) []relaytest.Recording {
	var out []relaytest.Recording
	for _, r := range relaytest.Recordings(t, responses.fallback, responses.named, responses.folders...) {
		name := r.Name
		units := r.Units
		r.Units = nil
		for _, u := range units {
			data := bytes.TrimSpace(u[bytes.Index(u, []byte("data: "))+len("data: "):])
			if !jsonwalk.Valid(data) && jsonwalk.Valid(append(bytes.Clone(data), '}')) {
				u = bytes.Replace(u, data, append(bytes.Clone(data), '}'), 1)
			}
			if bytes.Contains(u, []byte(`"type":"response.created"`)) && len(r.Units) > 0 {
				out = append(out, r)
				r.Units, r.Name = nil, fmt.Sprintf("%s-%d", name, len(out))
			}
			r.Units = append(r.Units, u)
		}
		out = append(out, r)
	}
	return out
}

func TestCutEverywhereResponses(t *testing.T) {
	responses.cutEverywhere(t, responsesRecordings(t))
}
