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

func TestFinishClosesWhatIsWhole(t *testing.T) {
	first := begin("resp_A").message(0, "msg_A", "I will ", "look.").closes(0, "msg_A", "I will look.").
		call(1, "fc_1", `{"a":1}`).call(2, "fc_2", `{"b":`)
	said := fold(t, string(first.out))
	said.Blocks[2].Withdrawn = true // relay takes an unfinished call out
	client := d.Finish(bytes.Clone(first.out), nil, said, dialect.Ending{Why: turn.ToolUse, Usage: turn.Usage{Known: true, Input: 3, Output: 4}})
	if n := bytes.Count(client, []byte(`"type":"response.output_item.done"`)); n != 2 {
		t.Errorf("%d items were ended, want the message's and the whole call's\n%s", n, client)
	}
	units := dialecttest.Units(client)
	end := units[len(units)-1].Data
	for path, want := range map[string]string{
		"type": `"response.completed"`, "response/status": `"completed"`, "response/usage/total_tokens": "7",
		"response/output/1/arguments": `"{\"a\":1}"`, "response/output/1/status": `"completed"`, "response/output/2": "",
	} {
		if got := jsonwalk.Get(end, strings.Split(path, "/")...); string(got) != want {
			t.Errorf("%s = %s, want %s", path, got, want)
		}
	}
	s := dialecttest.Read(t, d, dialecttest.Parse(t, d, []byte(hello)), client)
	if s.Blocks[2].Closed && bytes.Contains(client, []byte(`"call_id":"call_fc_2","name":"get","arguments":"{\"b\":`)) {
		t.Error("the unfinished call was ended")
	}
}

func TestEndings(t *testing.T) {
	for _, c := range []struct {
		name      string
		e         dialect.Ending
		typ, want string
	}{
		{"a natural end", dialect.Ending{Why: turn.Stopped}, "response.completed", "null"},
		{"a limit", dialect.Ending{Why: turn.Length}, "response.incomplete", `{"reason":"max_output_tokens"}`},
		{"a filter", dialect.Ending{Why: turn.Filtered}, "response.incomplete", `{"reason":"content_filter"}`},
		{"a reason of a later year", dialect.Ending{Why: turn.OtherEnd, Reason: "bored"}, "response.incomplete", `{"reason":"bored"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			said := fold(t, string(begin("resp_A").message(0, "msg_A", "Hi").out))
			units := dialecttest.Units(d.Finish(nil, nil, said, c.e))
			last := units[len(units)-1]
			if string(last.Name) != c.typ {
				t.Errorf("ends with %s", last.Name)
			}
			got := jsonwalk.Get(last.Data, "response", "incomplete_details")
			if got == nil {
				got = []byte("null")
			}
			if string(got) != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
	said := fold(t, string(begin("resp_A").message(0, "msg_A", "Hi").out))
	if out := d.Finish(nil, nil, said, dialect.Ending{Why: turn.Stopped, FinishSent: true}); len(out) != 0 {
		t.Errorf("behind the finish: %s", out)
	}
}

// A finish over open reasoning: its summary was shown, its encrypted_content never came. What came with the opening is
// partial and must not pass for it (FIELD-REPORTS D7).
func TestOpenReasoningEndsUnderTheMark(t *testing.T) {
	where := `"item_id":"rs_A","output_index":0,"summary_index":0`
	first := begin("resp_A").item(0, `{"id":"rs_A","type":"reasoning","summary":[],"encrypted_content":"gAAAPARTIAL"}`).
		event("response.reasoning_summary_part.added", where+`,"part":{"type":"summary_text","text":""}`).
		event("response.reasoning_summary_text.delta", where+`,"delta":"Hm"`)
	said := fold(t, string(first.out))
	out := d.DropReasoning(nil, said, 0)
	if bytes.Contains(out, []byte("PARTIAL")) || !bytes.Contains(out, []byte(`"encrypted_content":"`+turn.DropMark+`"`)) {
		t.Errorf("%s", out)
	}
	if again := d.DropReasoning(nil, said, 0); len(again) != 0 {
		t.Errorf("dropped twice: %s", again)
	}
	client := d.Finish(append(bytes.Clone(first.out), out...), nil, said, dialect.Ending{Why: turn.Stopped})
	if _, err := read(client); err != nil {
		t.Errorf("%v\n%s", err, client)
	}
}

func TestCloseBlockInventsNothing(t *testing.T) {
	for name, s := range map[string]*script{
		"an unfinished call":            begin("resp_A").call(0, "fc_1", `{"a":`),
		"an item that still runs":       begin("resp_A").item(0, `{"id":"ws_1","type":"web_search_call","status":"in_progress"}`),
		"an item nobody knows":          begin("resp_A").item(0, `{"id":"x_1","type":"hologram_call"}`),
		"a shell call of the caller's":  begin("resp_A").item(0, `{"id":"lsh_1","type":"local_shell_call","call_id":"c","status":"in_progress","action":{}}`),
		"custom input without its end":  begin("resp_A").item(0, `{"id":"ctc_1","type":"custom_tool_call","call_id":"c","name":"sql","input":""}`).event("response.custom_tool_call_input.delta", `"item_id":"ctc_1","output_index":0,"delta":"DROP"`),
		"an empty call without its end": begin("resp_A").call(0, "fc_1", `{}`),
	} {
		t.Run(name, func(t *testing.T) {
			said := fold(t, string(s.out))
			if out := d.CloseBlock(nil, said, 0); len(out) != 0 {
				t.Errorf("%s", out)
			}
			if out := d.Emit(nil, nil, said, 0); len(out) != 0 {
				t.Errorf("emitted %s", out)
			}
		})
	}
}

// A call of the application's that has no arguments to stream is emitted as its provider summed it up.
func TestEmitKeepsTheItem(t *testing.T) {
	item := `{"id":"lsh_1","type":"local_shell_call","call_id":"c","status":"completed","action":{"command":["ls"]},"novel":1}`
	said := fold(t, string(begin("resp_A").item(0, `{"id":"lsh_1","type":"local_shell_call","call_id":"c","status":"in_progress","action":{}}`).ends(0, item).out))
	out := d.Emit(nil, nil, said, 0)
	if !bytes.Contains(out, []byte(`"item":`+item)) || bytes.Contains(out, []byte("delta")) {
		t.Errorf("%s", out)
	}
}

func TestFailIsRaisedByEverybody(t *testing.T) {
	f := dialect.Failure{Cause: "TruncatedEOF", Reason: "budget_spent", Type: "server_error", Message: "gone"}
	for _, c := range []struct {
		name  string
		f     dialect.Failure
		want  string
		count int
	}{
		{"our own words", f, `"error":{"type":"server_error","code":"server_error","message":"gone (cause: TruncatedEOF, not recovered: budget_spent)","param":null}`, 2},
		{"the provider's", dialect.Failure{Raw: []byte(`{"type":"error","sequence_number":99,"error":{"type":"x","code":"y","message":"z","param":null}}`)}, `{"type":"error","sequence_number":5,"error":{"type":"x","code":"y","message":"z","param":null}}`, 2},
		{"the provider's failed response", dialect.Failure{Raw: []byte(`{"type":"response.failed","sequence_number":99,"response":{"status":"failed","error":{"code":"y"}}}`)}, `{"type":"response.failed","sequence_number":5,`, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			first := begin("resp_A").message(0, "msg_A", "Hi", " there")
			client := d.Fail(bytes.Clone(first.out), fold(t, string(first.out)), c.f)
			units := dialecttest.Units(client)[first.n:]
			if len(units) != c.count || !bytes.Contains(units[0].Data, []byte(c.want)) {
				t.Fatalf("%s", client[len(first.out):])
			}
			last := units[len(units)-1]
			if string(last.Name) != "response.failed" || text(last.Data, "response", "status") != "failed" {
				t.Errorf("%s", last.Raw)
			}
			if got, err := read(client); err == nil && string(got.Status) != "failed" {
				t.Error("an SDK takes it for a success")
			}
		})
	}
	if out := d.Fail(nil, nil, f); len(dialecttest.Units(out)) != 1 {
		t.Errorf("without a response there is none that failed: %s", out)
	}
}

func text(data []byte, path ...string) string {
	body, _ := jsonwalk.String(jsonwalk.Get(data, path...))
	return string(body)
}

func TestErrorBody(t *testing.T) {
	status, body := d.ErrorBody(dialect.Failure{Status: 503, Raw: []byte(`{"type":"error","error":{"code":"y"}}`)})
	if status != 503 || string(body) != `{"error":{"code":"y"}}` {
		t.Errorf("%d %s", status, body)
	}
}

// Codex's idle timer counts events, not comments (WIRE 3.3). OpenAI's own keepalive repeats no number; ours stands for
// nothing and uses none up, so that the numbers of what follows stay as they are.
func TestHeartbeatForClientsThatCountEvents(t *testing.T) {
	said := fold(t, string(begin("resp_A").message(0, "msg_A", "Hi").out))
	out := d.Heartbeat(nil, &dialect.Request{Keepalive: true}, said)
	if want := "event: keepalive\ndata: {\"type\":\"keepalive\",\"sequence_number\":3}\n\n"; string(out) != want {
		t.Errorf("%q", out)
	}
	if out = d.Heartbeat(nil, &dialect.Request{}, said); string(out) != ": keep-alive\n" {
		t.Errorf("%q", out)
	}
}

func TestRetract(t *testing.T) {
	said := fold(t, string(begin("resp_A").call(0, "fc_1", `{"a":`).out))
	if out := d.Retract(nil, said, 0, "why"); string(out) != "event: tool_call_cancel\ndata: {\"type\":\"tool_call_cancel\",\"sequence_number\":3,\"id\":\"call_fc_1\",\"name\":\"get\",\"reason\":\"why\"}\n\n" {
		t.Errorf("%s", out)
	}
	if out := d.Retract(nil, said, -1, "why"); string(out) != "event: stream_reset\ndata: {\"type\":\"stream_reset\",\"sequence_number\":4,\"reason\":\"why\"}\n\n" {
		t.Errorf("%s", out)
	}
}
