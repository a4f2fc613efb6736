package openairesponses_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

// thinks is a finished reasoning item, sealed or not.
func (s *script) thinks(at int, id, sealed string) *script {
	item := `{"id":` + quote(id) + `,"type":"reasoning","summary":[]` + sealed + `}`
	return s.item(at, `{"id":`+quote(id)+`,"type":"reasoning","summary":[]}`).ends(at, item)
}

// calls is a finished call.
func (s *script) calls(at int, id, args string) *script {
	s.call(at, id, args)
	s.event("response.function_call_arguments.done", `"item_id":`+quote(id)+`,"output_index":`+string(rune('0'+at))+`,"arguments":`+quote(args))
	return s.ends(at, `{"id":`+quote(id)+`,"type":"function_call","status":"completed","arguments":`+quote(args)+`,"call_id":"call_`+id+`","name":"get"}`)
}

// What a spliced turn said is handed on so that the provider, which knows nothing of
// it, can take it: sealed reasoning with what follows it, nothing else by its id.
func TestWhatALaterTurnBuildsOn(t *testing.T) {
	const (
		message = `{"type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"So it"}],"role":"assistant","phase":"final_answer"}`
		call    = `{"type":"function_call","status":"completed","arguments":"{\"a\":1}","call_id":"call_fc","name":"get"}`
	)
	for _, c := range []struct {
		name, request string
		said          *script
		want          string // of the next request, {"input":"next"}
	}{
		{"text", `{"model":"m","input":"Q"}`, begin("resp_A").message(0, "m1", "So it").closes(0, "m1", "So it"),
			`{"input":[{"role":"user","content":"Q"},` + message + `,{"role":"user","content":"next"}]}`},
		{"on an earlier turn", `{"model":"m","previous_response_id":"resp_0","input":[{"role":"user","content":"Q"}]}`, begin("resp_A").message(0, "m1", "So it").closes(0, "m1", "So it"),
			`{"previous_response_id":"resp_0","input":[{"role":"user","content":"Q"},` + message + `,{"role":"user","content":"next"}]}`},
		{"calls", `{"model":"m","input":"Q"}`, begin("resp_A").calls(0, "fc", `{"a":1}`),
			`{"input":[{"role":"user","content":"Q"},` + call + `,{"role":"user","content":"next"}]}`},
		{"reasoning that is not sealed stays behind", `{"model":"m","input":"Q"}`, begin("resp_A").thinks(0, "rs", "").calls(1, "fc", `{"a":1}`),
			`{"input":[{"role":"user","content":"Q"},` + call + `,{"role":"user","content":"next"}]}`},
		{"sealed reasoning goes along with its own", `{"model":"m","input":"Q"}`, begin("resp_A").thinks(0, "rs", `,"encrypted_content":"abc"`).calls(1, "fc", `{"a":1}`).calls(2, "fc", `{"a":1}`),
			`{"input":[{"role":"user","content":"Q"},{"id":"rs","type":"reasoning","summary":[],"encrypted_content":"abc"},{"id":"fc",` + call[1:] + `,` + call + `,{"role":"user","content":"next"}]}`},
		{"hosted items keep their ids", `{"model":"m","input":[]}`, begin("resp_A").item(0, `{"id":"ws","type":"web_search_call"}`).ends(0, `{"id":"ws","type":"web_search_call","status":"completed"}`),
			`{"input":[{"id":"ws","type":"web_search_call","status":"completed"},{"role":"user","content":"next"}]}`},
		{"a blank message is none", `{"model":"m","input":[]}`, begin("resp_A").message(0, "m1", " ").closes(0, "m1", " ").calls(1, "fc", `{"a":1}`),
			`{"input":[` + call + `,{"role":"user","content":"next"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			left := d.Keep([]byte(c.request), fold(t, string(c.said.out)))
			id, kept := left.ID, left.Turn
			if id != "resp_A" || !jsonwalk.Valid(kept) {
				t.Fatalf("kept %q as %q", kept, id)
			}
			next := []byte(`{"previous_response_id":"resp_A","input":"next"}`)
			if d.Named(next) != id {
				t.Fatalf("it names %q", d.Named(next))
			}
			if got := d.Expand(next, kept); string(got) != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// Some clients name the items of a stored turn one by one (the AI SDK does). Those of
// a spliced turn are put in place; others are the provider's to know.
func TestItemsThatAreNamedOneByOne(t *testing.T) {
	said := fold(t, string(begin("resp_A").thinks(0, "rs_open", "").message(1, "m1", "So it").closes(1, "m1", "So it").
		thinks(2, "rs", `,"encrypted_content":"abc"`).calls(3, "fc", `{"a":1}`).out))
	kept := map[string][]byte{}
	for _, h := range d.Keep([]byte(`{"model":"m","input":"Q"}`), said).Items {
		kept[h.ID] = h.Item
	}
	ref := func(id string) string { return `{"type":"item_reference","id":"` + id + `"}` }
	body := []byte(`{"input":[{"role":"user","content":"Q"}, ` + ref("rs_known") + `,` + ref("rs_open") + `,` + ref("m1") + `,` + ref("rs") + ` , ` + ref("fc") + `,{"type":"function_call_output","call_id":"call_fc","output":"x"}],"model":"m"}`)
	if ids := strings.Join(d.Refers(body), " "); ids != "rs_known rs_open m1 rs fc" {
		t.Errorf("it names %s", ids)
	}
	want := `{"input":[{"role":"user","content":"Q"}, ` + ref("rs_known") +
		`,{"type":"message","status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":"So it"}],"role":"assistant","phase":"final_answer"}` +
		`,{"id":"rs","type":"reasoning","summary":[],"encrypted_content":"abc"}` +
		` , {"id":"fc","type":"function_call","status":"completed","arguments":"{\"a\":1}","call_id":"call_fc","name":"get"}` +
		`,{"type":"function_call_output","call_id":"call_fc","output":"x"}],"model":"m"}`
	if got := string(d.Inline(body, func(id string) []byte { return kept[id] })); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	none := d.Inline(body, func(string) []byte { return nil })
	if &none[0] != &body[0] {
		t.Error("a request that names nothing of ours does not pass as it is")
	}
}

func TestTurnsThatNobodyCanName(t *testing.T) {
	said := fold(t, string(begin("resp_A").message(0, "m1", "So it").closes(0, "m1", "So it").out))
	for name, request := range map[string]string{
		"stored nowhere":    `{"model":"m","input":"x","store":false}`,
		"a stored prompt":   `{"prompt":{"id":"p"},"input":"x"}`,
		"in a conversation": `{"model":"m","input":"x","conversation":"conv_1"}`,
	} {
		if left := d.Keep([]byte(request), said); left.ID != "" {
			t.Errorf("%s: kept as %q", name, left.ID)
		}
	}
	if left := d.Keep([]byte(`{"model":"m","input":"x"}`), fold(t, "")); left.ID != "" {
		t.Errorf("without an id: kept as %q", left.ID)
	}
}

// FuzzExpand: whatever is named by whatever request, the outcome is sound and names
// what the kept turn named; everything but input and the name keeps its bytes.
func FuzzExpand(f *testing.F) {
	f.Add([]byte(`{"previous_response_id":"a","input":"x","model":"m"}`), []byte(`{"input":[{"a":1}],"previous_response_id":"b"}`))
	f.Add([]byte(`{ "input" : [ 1 , 2 ] , "previous_response_id" : "a" }`), []byte(`{"input":[]}`))
	f.Add([]byte(`{"previous_response_id":"a"}`), []byte(`{"input":[1]}`))
	f.Fuzz(func(t *testing.T, body, kept []byte) {
		if !jsonwalk.Valid(body) || !jsonwalk.Valid(kept) || jsonwalk.KindOf(body) != jsonwalk.KindObject || jsonwalk.KindOf(kept) != jsonwalk.KindObject {
			return
		}
		out := d.Expand(bytes.Clone(body), bytes.Clone(kept))
		if out == nil {
			return
		}
		if !jsonwalk.Valid(out) || d.Named(out) != d.Named(kept) {
			t.Fatalf("%s\nnames %q", out, d.Named(out))
		}
		rest := func(b []byte) string {
			return string(jsonwalk.DeleteMember(nil, jsonwalk.DeleteMember(nil, b, "input"), "previous_response_id"))
		}
		if jsonwalk.Get(body, "input") != nil && d.Named(kept) == "" && rest(out) != rest(body) {
			t.Fatalf("%s\nbecame %s", rest(body), rest(out))
		}
	})
}
