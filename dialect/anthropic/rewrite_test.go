package anthropic_test

import (
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// hop plays a later attempt through Rewrite, with relay's editing as the test writes it down: one function per event.
func hop(t *testing.T, s *turn.Snapshot, events []string, edit func(event int, d *turn.Delta)) (out []byte) {
	t.Helper()
	dec := d.NewDecoder(nil)
	for i, e := range dialecttest.Units(stream(events...)) {
		ds, err := dec.Decode(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		for j := range ds {
			edit(i, &ds[j])
		}
		out = d.Rewrite(out, nil, e, ds, s)
		for _, x := range ds {
			if err := s.Fold(x); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out
}

const headB = `{"type":"message_start","message":{"id":"msg_b","type":"message","role":"assistant","model":"other","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":99,"output_tokens":1}}}`

// TestSeamKeepsIndicesAndIdentity is FIELD-REPORTS D1 and D2 in one: the second attempt starts again at index 0 with an
// id of its own, goes on in the text that is open, and adds a call. The client must see blocks 0, 1, 2, each opened and
// closed once, under one id.
func TestSeamKeepsIndicesAndIdentity(t *testing.T) {
	first := []string{beginThinking(0), thinks(0, "hm"), signs(0, "c2ln"), stop(0), beginText(1), says(1, "AB")}
	s := said(t, first...)
	out := hop(t, s, []string{headB, `{"type":"ping"}`, beginText(0), says(0, "ABCD"), stop(0), beginTool(1, "toolu_1", "f"), args(1, ""), args(1, `{"a":1}`), stop(1), finish("tool_use", 9), end},
		func(i int, x *turn.Delta) {
			x.Block++ // its 0 is the client's 1, its 1 the client's 2
			switch {
			case x.Kind == turn.Head, i == 0 && x.Kind == turn.Count, i == 2 && x.Kind == turn.Open:
				x.Kind = turn.Skip
			case i == 3:
				x.Text = x.Text[2:] // "AB" again
			case x.Kind == turn.Open:
				x.Index = 2
			case x.Kind == turn.Count:
				x.Usage.Input, x.Usage.Output = 10, 33
			}
		})
	want := string(stream(`{"type":"ping"}`, says(1, "CD"), stop(1), beginTool(2, "toolu_1", "f"), args(2, `{"a":1}`), stop(2),
		strings.Replace(finish("tool_use", 9), `"output_tokens":9`, `"output_tokens":33`, 1), end))
	if string(out) != want {
		t.Errorf("got:\n%s\nwant:\n%s", out, want)
	}
	m := mustReceive(t, append(stream(append([]string{head}, first...)...), out...))
	if len(m.Content) != 3 || m.ID != "msg_a" || m.Content[1].Text != "ABCD" || string(m.Content[2].Input) != `{"a":1}` || m.Usage.OutputTokens != 33 {
		t.Errorf("%s", told(t, m))
	}
}

func TestRewriteOneEvent(t *testing.T) {
	keep := func(int, *turn.Delta) {}
	shift := func(_ int, x *turn.Delta) { x.Block, x.Index = x.Block+1, 5 }
	skip := func(kinds ...turn.Kind) func(int, *turn.Delta) {
		return func(_ int, x *turn.Delta) {
			for _, k := range kinds {
				if x.Kind == k {
					x.Kind = turn.Skip
				}
			}
		}
	}
	for _, tt := range []struct {
		name         string
		said, events []string
		edit         func(int, *turn.Delta)
		want         string
	}{
		{"a second head is consumed", nil, []string{headB}, skip(turn.Head), ""},
		{"calls inside a second head open as blocks", []string{beginText(0), says(0, "x"), stop(0)},
			[]string{strings.Replace(headB, `"content":[]`, `"content":[{"type":"tool_use","id":"i","name":"n","input":{"a":1}},{"type":"text","text":"t"}]`, 1)},
			func(_ int, x *turn.Delta) {
				if x.Block++; x.Kind == turn.Open {
					x.Index = x.Block
				}
			},
			string(stream(begin(1, `{"type":"tool_use","id":"i","name":"n","input":{"a":1}}`), stop(1), beginText(2), says(2, "t"), stop(2)))},
		{"text of a start event goes on in the block that is open", []string{beginText(0), says(0, "A")}, []string{begin(0, `{"type":"text","text":"B"}`)},
			skip(turn.Open), string(stream(says(0, "B")))},
		{"text of a start event is cut in its place", []string{beginText(0), stop(0)}, []string{begin(0, `{"type":"text","text":"ABC","x":1}`)},
			func(_ int, x *turn.Delta) {
				x.Block, x.Index = 1, 1
				if x.Kind == turn.Text {
					x.Text = x.Text[1:]
				}
			}, string(stream(begin(1, `{"type":"text","text":"BC","x":1}`)))},
		{"unknown members and padding survive", []string{beginText(0), stop(0)},
			[]string{`{"index":0,"content_block":{"text":"","type":"text","new":[1, 2]},"type":"content_block_start"   }`}, shift,
			string(stream(`{"index":5,"content_block":{"text":"","type":"text","new":[1, 2]},"type":"content_block_start"   }`))},
		{"suppressed thinking leaves no trace", []string{beginText(0), says(0, "A")},
			[]string{beginThinking(0), thinks(0, "hm"), signs(0, "c2ln"), stop(0)},
			func(_ int, x *turn.Delta) { x.Kind = turn.Skip }, ""},
		{"usage without the finish would be a second message_delta", []string{beginText(0)}, []string{finish("end_turn", 3)}, skip(turn.Finish), ""},
		{"an unknown event moves with its block", []string{beginText(0), stop(0)},
			[]string{begin(0, `{"type":"text","text":""}`), `{"type":"note","index":0,"n":1}`}, shift,
			string(stream(begin(5, `{"type":"text","text":""}`), `{"type":"note","index":5,"n":1}`))},
		{"an unknown event without an index passes", nil, []string{`{"type":"note", "n":1}`}, keep, string(stream(`{"type":"note", "n":1}`))},
		{"a citation moves with its block", []string{beginText(0)},
			[]string{begin(0, `{"type":"text","text":""}`), `{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{}}}`}, shift,
			string(stream(begin(5, `{"type":"text","text":""}`), `{"type":"content_block_delta","index":5,"delta":{"type":"citations_delta","citation":{}}}`))},
		{"the stop of a block that never opened is dropped", nil, []string{stop(3)}, keep, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if out := hop(t, said(t, tt.said...), tt.events, tt.edit); string(out) != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", out, tt.want)
			}
		})
	}
}

// TestUsageIsTheWholeMessages: SDKs overwrite message_start's prompt counts with message_delta's, and one adds up
// iterations, so a later attempt's own numbers would be the bill of half a message (WIRE 3.2).
func TestUsageIsTheWholeMessages(t *testing.T) {
	event := `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":99,"cache_read_input_tokens":50,"output_tokens":5,"server_tool_use":{"web_search_requests":1},"iterations":[{"input_tokens":99}]}}`
	merged := func(_ int, x *turn.Delta) {
		if x.Kind == turn.Count {
			x.Usage.Input, x.Usage.Output = 10, 25
		}
	}
	got := string(hop(t, said(t), []string{event}, merged))
	want := string(stream(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":10,"cache_read_input_tokens":4,"output_tokens":25,"server_tool_use":{"web_search_requests":1}}}`))
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	s := said(t)
	s.Head = []byte(strings.Replace(head, `"output_tokens":1`, `"output_tokens":1,"iterations":[]`, 1))
	if got := string(hop(t, s, []string{event}, merged)); !strings.Contains(got, `"iterations":[{`) {
		t.Errorf("iterations that the client has seen are gone: %s", got)
	}
	none := func(_ int, x *turn.Delta) {
		if x.Kind == turn.Count {
			x.Kind = turn.Skip
		}
	}
	s = said(t)
	s.Usage.Output = 77
	got = string(hop(t, s, []string{`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`}, none))
	if want := string(stream(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":77}}`)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestRewriteNamesEvents: SDKs drop events without an event line, and a later attempt may come through a gateway that
// leaves it out.
func TestRewriteNamesEvents(t *testing.T) {
	s := said(t, beginText(0))
	ds := []turn.Delta{{Kind: turn.Text, Text: []byte("x")}}
	out := d.Rewrite(nil, nil, sse.Event{Data: []byte(says(7, "yx"))}, ds, s)
	if want := string(stream(says(0, "x"))); string(out) != want {
		t.Errorf("got %s want %s", out, want)
	}
	ping := sse.Event{Name: []byte("ping"), Raw: []byte("event: ping\n\n")}
	if out := d.Rewrite(nil, nil, ping, []turn.Delta{{Kind: turn.Pulse}}, s); string(out) != string(ping.Raw) {
		t.Errorf("a ping without data became %q", out)
	}
}
