package openairesponses_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// TestAContinuationEndsTheItemItGoesOnIn is the story of FIELD-REPORTS D19: after a splice, responses held two created
// events, item ids that nobody had opened, numbers twice, and a completed response without output.
func TestAContinuationEndsTheItemItGoesOnIn(t *testing.T) {
	first := begin("resp_A").message(0, "msg_A", "Héllo ", "wor").cites(0, "msg_A", 0, 0, 5)
	later := begin("resp_B").item(0, `{"id":"rs_B","type":"reasoning","summary":[]}`).
		ends(0, `{"id":"rs_B","type":"reasoning","summary":[],"encrypted_content":"gAAASECRET"}`).
		message(1, "msg_B", "ld — ", "“all”").cites(1, "msg_B", 0, 5, 10).
		closes(1, "msg_B", "ld — “all”", citation(5, 10)).
		call(2, "fc_B", `{"a":`, `1}`).ends(2, `{"id":"fc_B","type":"function_call","status":"completed","arguments":"{\"a\":1}","call_id":"call_fc_B","name":"get"}`).
		completed(40, 7)
	said := fold(t, string(first.out))
	client := append(bytes.Clone(first.out), splice(t, said, later.out)...)
	got, err := read(client)
	if err != nil {
		t.Fatalf("%v\n%s", err, client)
	}
	if got.ID != "resp_A" || got.Model != "gpt-5" || len(got.Output) != 2 {
		t.Fatalf("%s", got.RawJSON())
	}
	m := got.Output[0]
	if m.ID != "msg_A" || m.Content[0].Text != "Héllo world — “all”" {
		t.Errorf("message: %s", m.RawJSON())
	}
	// The second citation's place is counted from the start of the joined text.
	want := "[" + citation(0, 5) + "," + citation(14, 19) + "]"
	if raw := jsonwalk.Get([]byte(m.RawJSON()), "content", "0", "annotations"); !equal(raw, []byte(want)) {
		t.Errorf("annotations %s, want %s", raw, want)
	}
	if !bytes.Contains(client, []byte(`"annotation_index":1,"annotation":`+citation(14, 19))) {
		t.Errorf("the event of the second citation: %s", client)
	}
	if c := got.Output[1]; c.ID != "fc_B" || c.CallID != "call_fc_B" || c.Arguments.OfString != `{"a":1}` {
		t.Errorf("call: %s", c.RawJSON())
	}
	for _, word := range []string{"resp_B", "msg_B", "SECRET", "rs_B", "of this attempt"} {
		if bytes.Contains(client, []byte(word)) {
			t.Errorf("the client sees %s", word)
		}
	}
	raw := []byte(got.RawJSON())
	for member, want := range map[string]string{"store": "true", "echo": `"resp_A"`, "novel": "true", "created_at": "1", "completed_at": "10"} {
		if v := jsonwalk.Get(raw, member); string(v) != want {
			t.Errorf("%s = %s, want %s", member, v, want)
		}
	}
}

// A cut between the opening of an item and that of its part leaves an index used up and nothing else: the later
// attempt's text goes on there, and opens the part.
func TestAPartIsOpenedOnce(t *testing.T) {
	for _, c := range []struct {
		name  string
		first *script
	}{
		{"only the item was opened", begin("resp_A").item(0, `{"id":"msg_A","type":"message","status":"in_progress","content":[],"role":"assistant"}`)},
		{"the part was opened, too", begin("resp_A").message(0, "msg_A")},
		{"some of it was said", begin("resp_A").message(0, "msg_A", "So")},
	} {
		t.Run(c.name, func(t *testing.T) {
			said := fold(t, string(c.first.out))
			later := begin("resp_B").message(0, "msg_B", " it goes.").closes(0, "msg_B", " it goes.").completed(1, 1)
			client := append(bytes.Clone(c.first.out), splice(t, said, later.out)...)
			got, err := read(client)
			if err != nil {
				t.Fatalf("%v\n%s", err, client)
			}
			if text := got.OutputText(); !strings.HasSuffix(text, " it goes.") {
				t.Errorf("%q", text)
			}
		})
	}
}

// Relay takes the held end of a text back when what followed it was cut, and the text goes on: its end is rendered anew.
func TestAnEndThatWasTakenBackIsRenderedAgain(t *testing.T) {
	shown := begin("resp_A").message(0, "msg_A", "One")
	cut := len(shown.out)
	all := shown.closes(0, "msg_A", "One").call(1, "fc_A", `{"a`)
	said := fold(t, string(all.out))
	said.Truncate(1)
	said.Blocks[0].Closed, said.Seq = false, 3
	later := begin("resp_B").message(0, "msg_B", ", two").closes(0, "msg_B", ", two").completed(1, 1)
	client := append(bytes.Clone(all.out[:cut]), splice(t, said, later.out)...)
	got, err := read(client)
	if err != nil {
		t.Fatalf("%v\n%s", err, client)
	}
	if got.OutputText() != "One, two" {
		t.Errorf("%q", got.OutputText())
	}
}

// A later attempt's second part stands in the item of its first, whatever index relay counted for it.
func TestAFurtherPartStaysInItsItem(t *testing.T) {
	said := fold(t, string(begin("resp_A").message(0, "msg_A", "One").out))
	where := `"item_id":"msg_B","output_index":0,"content_index":1`
	later := begin("resp_B").message(0, "msg_B", " two")
	later.event("response.output_text.done", `"item_id":"msg_B","output_index":0,"content_index":0,"text":" two","logprobs":[]`)
	later.event("response.content_part.added", where+`,"part":{"type":"output_text","annotations":[],"text":""}`)
	later.event("response.output_text.delta", where+`,"delta":"Three"`)
	later.event("response.output_text.done", where+`,"text":"Three"`)
	later.ends(0, `{"id":"msg_B","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":" two"},{"type":"output_text","annotations":[],"text":"Three"}]}`)
	later.message(1, "msg_C", "Four").closes(1, "msg_C", "Four").completed(1, 1)
	client := append(bytes.Clone(begin("resp_A").message(0, "msg_A", "One").out), splice(t, said, later.out)...)
	got, err := read(client)
	if err != nil {
		t.Fatalf("%v\n%s", err, client)
	}
	if len(got.Output) != 2 || len(got.Output[0].Content) != 2 || got.OutputText() != "One twoThreeFour" {
		t.Errorf("%s", got.RawJSON())
	}
}

// Reasoning that was cut after the end of a part, but before its item's, has no encrypted_content: it is closed under
// the mark before anything follows.
func TestDanglingReasoningIsDropped(t *testing.T) {
	where := `"item_id":"rs_A","output_index":0,"summary_index":0`
	first := begin("resp_A").item(0, `{"id":"rs_A","type":"reasoning","summary":[],"encrypted_content":"gAAAPARTIAL"}`).
		event("response.reasoning_summary_part.added", where+`,"part":{"type":"summary_text","text":""}`).
		event("response.reasoning_summary_text.delta", where+`,"delta":"Hm"`).
		event("response.reasoning_summary_text.done", where+`,"text":"Hm"`)
	said := fold(t, string(first.out))
	later := begin("resp_B").message(0, "msg_B", "Yes").closes(0, "msg_B", "Yes").completed(1, 1)
	client := append(bytes.Clone(first.out), splice(t, said, later.out)...)
	got, err := read(client)
	if err != nil {
		t.Fatalf("%v\n%s", err, client)
	}
	if len(got.Output) != 2 || got.Output[0].EncryptedContent != turn.DropMark || got.Output[0].Summary[0].Text != "Hm" || got.OutputText() != "Yes" {
		t.Errorf("%s", got.RawJSON())
	}
	if bytes.Index(client, []byte(turn.DropMark)) > bytes.Index(client, []byte(`"id":"msg_B"`)) {
		t.Error("the message opens inside the reasoning item")
	}
	if said.Blocks[0].Live() {
		t.Error("the dropped reasoning still counts")
	}
}

// Events of a host that numbers none get none.
func TestUnnumberedStaysUnnumbered(t *testing.T) {
	strip := func(s *script) string {
		out := string(s.out)
		for n := s.n - 1; n >= 0; n-- {
			out = strings.ReplaceAll(out, `"sequence_number":`+string(rune('0'+n%10))+`,`, "")
		}
		return out
	}
	first := strip(begin("resp_A").message(0, "msg_A", "One"))
	said := fold(t, first)
	later := begin("resp_B").message(0, "msg_B", " two").closes(0, "msg_B", " two").completed(1, 1)
	client := first + string(splice(t, said, later.out))
	if strings.Contains(client, "sequence_number") {
		t.Errorf("%s", client)
	}
	if got, err := read([]byte(client)); err != nil || got.OutputText() != "One two" {
		t.Errorf("%v\n%s", err, client)
	}
}

func TestUsageIsOfTheWholeTurn(t *testing.T) {
	first := begin("resp_A").message(0, "msg_A", "One")
	said := fold(t, string(first.out))
	e := dialecttest.Units(begin("resp_B").completed(40, 7).out)[1]
	ds := []turn.Delta{{Kind: turn.Count, Usage: turn.Usage{Known: true, Input: 12, Output: 20}}, {Kind: turn.Finish, Why: turn.Stopped}}
	out := d.Rewrite(nil, &dialect.Request{}, e, ds, said)
	usage := jsonwalk.Get(dialecttest.Units(out)[0].Data, "response", "usage")
	if want := `{"input_tokens":12,"input_tokens_details":{"cached_tokens":12},"output_tokens":20,"total_tokens":32}`; string(usage) != want {
		t.Errorf("%s, want %s", usage, want)
	}
}
