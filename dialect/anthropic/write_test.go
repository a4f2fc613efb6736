package anthropic_test

import (
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/turn"
)

// TestHeartbeat: an empty or comment-like ping is a parse error in some SDKs (FIELD-REPORTS B6).
func TestHeartbeat(t *testing.T) {
	if got := string(d.Heartbeat(nil, nil, nil)); got != "event: ping\ndata: {\"type\":\"ping\"}\n\n" {
		t.Errorf("%q", got)
	}
}

func TestFinish(t *testing.T) {
	known := func(n int64) turn.Usage { return turn.Usage{Known: true, Input: 10, Output: n} }
	for _, tt := range []struct {
		name string
		said []string
		e    dialect.Ending
		want []string
	}{
		{"text is closed and ends the turn", []string{beginText(0), says(0, "AB")}, dialect.Ending{Why: turn.Stopped, Usage: known(7)},
			[]string{stop(0), finish("end_turn", 7), end}},
		{"the provider's own reason is kept", []string{beginText(0), stop(0)}, dialect.Ending{Why: turn.OtherEnd, Reason: "new_reason", Usage: known(7)},
			[]string{finish("new_reason", 7), end}},
		{"a stop sequence is named", []string{beginText(0), stop(0)}, dialect.Ending{Why: turn.Stopped, Stop: "E\"ND", Usage: known(7)},
			[]string{`{"type":"message_delta","delta":{"stop_reason":"stop_sequence","stop_sequence":"E\"ND"},"usage":{"output_tokens":7}}`, end}},
		{"nothing is left of the limit", []string{beginText(0)}, dialect.Ending{Why: turn.Length, Usage: known(7)}, []string{stop(0), finish("max_tokens", 7), end}},
		{"a complete call is closed (R2)", []string{beginTool(0, "i", "n"), args(0, `{"a":1}`)}, dialect.Ending{Why: turn.ToolUse, Usage: known(7)},
			[]string{stop(0), finish("tool_use", 7), end}},
		// FIELD-REPORTS D3: closed, `{"path":"/a","content":"lin` becomes a runnable call in two SDKs.
		{"an unfinished call is never closed", []string{beginText(0), says(0, "A"), stop(0), beginTool(1, "i", "n"), args(1, `{"path":"/a","content":"lin`)},
			dialect.Ending{Why: turn.Stopped, Usage: known(7)}, []string{finish("end_turn", 7), end}},
		{"a placeholder is not a call", []string{beginTool(0, "i", "n"), args(0, `{}`)}, dialect.Ending{Why: turn.Stopped, Usage: known(7)},
			[]string{finish("end_turn", 7), end}},
		{"open thinking is closed under the mark", []string{beginThinking(0), thinks(0, "hm")}, dialect.Ending{Why: turn.Length, Usage: known(7)},
			[]string{signs(0, turn.DropMark), stop(0), finish("max_tokens", 7), end}},
		{"only the terminator is missing", []string{beginText(0), stop(0), finish("end_turn", 7)}, dialect.Ending{FinishSent: true, UsageSent: true}, []string{end}},
		{"usage that nobody knows is estimated", []string{beginText(0), says(0, "twelve bytes"), stop(0)}, dialect.Ending{Why: turn.Stopped}, []string{finish("end_turn", 3), end}},
		{"the last record is used where there is one", []string{beginText(0), says(0, "x"), stop(0), finish("end_turn", 70)}, dialect.Ending{Why: turn.Stopped}, []string{finish("end_turn", 70), end}},
		{"a prompt that grew is told", []string{beginText(0), stop(0)}, dialect.Ending{Why: turn.Stopped, Usage: turn.Usage{Known: true, Input: 500, Output: 7}},
			[]string{strings.Replace(finish("end_turn", 7), `"output`, `"input_tokens":500,"output`, 1), end}},
		{"a refusal", nil, dialect.Ending{Why: turn.Filtered, Usage: known(0)}, []string{finish("refusal", 0), end}},
		{"a pause", nil, dialect.Ending{Why: turn.Paused, Usage: known(0)}, []string{finish("pause_turn", 0), end}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := d.Finish(nil, nil, said(t, tt.said...), tt.e)
			if want := string(stream(tt.want...)); string(out) != want {
				t.Errorf("got:\n%s\nwant:\n%s", out, want)
			}
			m := mustReceive(t, append(stream(append([]string{head}, tt.said...)...), out...))
			if m.StopReason == "" {
				t.Error("the sdk sees no stop reason")
			}
		})
	}
}

// TestWithdrawnBlocksStayBehind: in mode "events" a retracted block is still on the client's wire. It is neither closed
// by an ending nor sent back to the provider.
func TestWithdrawnBlocksStayBehind(t *testing.T) {
	s := said(t, beginTool(0, "i", "n"), args(0, `{"a":1}`), beginText(1), says(1, "old"), beginText(2), says(2, "new"))
	s.Blocks[0].Withdrawn, s.Blocks[1].Withdrawn = true, true
	usage := turn.Usage{Known: true, Input: 10, Output: 1}
	if got, want := string(d.Finish(nil, nil, s, dialect.Ending{Why: turn.Stopped, Usage: usage})), string(stream(stop(2), finish("end_turn", 1), end)); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if got := string(d.Fail(nil, s, dialect.Failure{})); !strings.HasPrefix(got, string(stream(stop(2)))+"event: error\n") {
		t.Errorf("got:\n%s", got)
	}
	body, err := d.Continue(parse(t, plainRequest), s, prefill)
	if err != nil || !strings.Contains(string(body), `"content":[{"type":"text","text":"new"}]`) {
		t.Errorf("%v: %s", err, body)
	}
}

func TestEmit(t *testing.T) {
	turns := []string{
		beginThinking(0), thinks(0, "hm"), signs(0, "c2ln"), stop(0),
		begin(1, `{"type":"redacted_thinking","data":"b3A="}`), stop(1),
		beginText(2), says(2, "A\n\"B\""), stop(2),
		begin(3, `{"type":"server_tool_use","id":"srv","name":"web_search","input":{}}`), args(3, `{"query":"x"}`), stop(3),
		begin(4, `{"type":"web_search_tool_result","tool_use_id":"srv","content":[]}`), stop(4),
		begin(5, `{"type":"tool_use","id":"toolu_1","name":"f","input":{},"caller":{"type":"direct"}}`), args(5, `{"a": "é`), args(5, `"}`), stop(5),
		begin(6, `{"type":"tool_use","id":"toolu_2","name":"g","input":{"whole":true}}`), stop(6),
		beginTool(7, "toolu_3", "h"), args(7, ""), stop(7),
		beginTool(8, "toolu_4", "cut"), args(8, `{"a":`),
	}
	s := said(t, turns...)
	out := stream(head)
	for n := range s.Blocks {
		out = d.Emit(out, nil, s, n)
	}
	if strings.Contains(string(out), "toolu_4") {
		t.Error("an unfinished call was emitted")
	}
	out = d.Finish(out, nil, said(t), dialect.Ending{Why: turn.ToolUse, Usage: turn.Usage{Known: true, Input: 10, Output: 5}})
	want := told(t, mustReceive(t, stream(append(append([]string{head}, turns[:len(turns)-2]...), finish("tool_use", 5), end)...)))
	if got := told(t, mustReceive(t, out)); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if !strings.Contains(string(out), `"caller":{"type":"direct"}`) {
		t.Error("the caller field is lost")
	}
}

func TestCloseBlock(t *testing.T) {
	s := said(t, beginText(0), says(0, "A"), beginTool(1, "i", "n"), args(1, `{"a":`), beginThinking(2), thinks(2, "hm"), beginTool(3, "j", "n"), args(3, `{"a":1}`))
	for n, want := range []string{string(stream(stop(0))), "", string(stream(signs(2, turn.DropMark), stop(2))), string(stream(stop(3)))} {
		if got := string(d.CloseBlock(nil, s, n)); got != want {
			t.Errorf("block %d: got %q want %q", n, got, want)
		}
	}
}

// TestDropReasoning: after a restart the client keeps what it saw of the thinking, under a signature that no provider
// will ever be shown.
func TestDropReasoning(t *testing.T) {
	first := []string{beginThinking(0), thinks(0, "half a tho")}
	s := said(t, first...)
	out := d.DropReasoning(nil, s, 0)
	if want := string(stream(signs(0, "ub1.drop"), stop(0))); string(out) != want {
		t.Errorf("got:\n%s\nwant:\n%s", out, want)
	}
	all := append(stream(append([]string{head}, first...)...), out...)
	all = append(all, stream(beginThinking(1), thinks(1, "whole"), signs(1, "c2ln"), stop(1), beginText(2), says(2, "A"), stop(2), finish("end_turn", 3), end)...)
	m := mustReceive(t, all)
	history := `{"model":"m","messages":[{"role":"user","content":"Q"},` + marshal(t, m.ToParam()) + `,{"role":"user","content":"next"}]}`
	repaired := string(d.Repair([]byte(history)))
	if strings.Contains(repaired, "half a tho") || !strings.Contains(repaired, "c2ln") {
		t.Errorf("the sdk's own history is repaired to %s", repaired)
	}
	if out := d.DropReasoning(nil, said(t, beginText(0)), 0); out != nil {
		t.Errorf("text is not reasoning: %s", out)
	}
	if out := d.DropReasoning(nil, said(t, beginThinking(0), signs(0, "x"), stop(0)), 0); out != nil {
		t.Errorf("a closed block was closed again: %s", out)
	}
}

// TestFailIsRaised: without the standard shape some SDKs end normally (FIELD-REPORTS E2).
func TestFailIsRaised(t *testing.T) {
	first := []string{beginText(0), says(0, "AB"), stop(0), beginTool(1, "i", "n"), args(1, `{"a":"`), beginThinking(2), thinks(2, "h"), beginText(3), says(3, "C")}
	for _, tt := range []struct {
		name string
		f    dialect.Failure
		want string
	}{
		{"the provider's words, what happened, why it was not healed", dialect.Failure{Cause: "ConnectionReset", Reason: "budget_spent", Status: 529, Type: "overloaded_error", Message: "Over\"loaded"},
			`{"type":"error","error":{"type":"overloaded_error","message":"Over\"loaded (cause: ConnectionReset, not recovered: budget_spent)"}}`},
		{"a cut without words", dialect.Failure{Cause: "TruncatedEOF"}, `{"type":"error","error":{"type":"api_error","message":"the provider's stream was interrupted (cause: TruncatedEOF)"}}`},
		{"a status without a type", dialect.Failure{Status: 504, Reason: "deadline"}, `{"type":"error","error":{"type":"timeout_error","message":"the provider's stream was interrupted (not recovered: deadline)"}}`},
		{"a 4xx without a type of its own", dialect.Failure{Status: 422, Message: "m"}, `{"type":"error","error":{"type":"invalid_request_error","message":"m"}}`},
		{"the provider's own event, verbatim", dialect.Failure{Cause: "x", Raw: []byte(`{"type": "error","error":{"type":"api_error","message":"m"},"request_id":"r"}`)},
			`{"type": "error","error":{"type":"api_error","message":"m"},"request_id":"r"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			out := d.Fail(nil, said(t, first...), tt.f)
			// Text is closed; the open call and the open thinking are not (D3, D7).
			if want := string(stream(stop(3))) + "event: error\ndata: " + tt.want + "\n\n"; string(out) != want {
				t.Errorf("got:\n%s\nwant:\n%s", out, want)
			}
			legal := []string{beginText(0), says(0, "AB")}
			_, err := receive(append(stream(append([]string{head}, legal...)...), d.Fail(nil, said(t, legal...), tt.f)...))
			if err == nil || !strings.Contains(err.Error(), "error") {
				t.Errorf("the sdk raises %v", err)
			}
		})
	}
	if out := string(d.Fail(nil, nil, dialect.Failure{})); !strings.HasPrefix(out, "event: error\n") {
		t.Errorf("before anything was said: %q", out)
	}
}

func TestErrorBody(t *testing.T) {
	for _, tt := range []struct {
		f      dialect.Failure
		status int
		typ    string
	}{
		{dialect.Failure{}, 502, "api_error"},
		{dialect.Failure{Type: "overloaded_error"}, 529, "overloaded_error"},
		{dialect.Failure{Status: 429}, 429, "rate_limit_error"},
		{dialect.Failure{Status: 413}, 413, "request_too_large"},
		{dialect.Failure{Status: 503, Type: "own_type"}, 503, "own_type"},
		{dialect.Failure{Status: 402}, 402, "billing_error"},
		{dialect.Failure{Raw: []byte(`{"type":"error","error":{"type":"api_error","message":"theirs"}}`)}, 502, "theirs"},
		{dialect.Failure{Raw: []byte("<html>")}, 502, "api_error"},
	} {
		status, body := d.ErrorBody(tt.f)
		var e sdk.ErrorResponse
		if err := e.UnmarshalJSON(body); err != nil || status != tt.status || e.Type != "error" || !strings.Contains(string(body), tt.typ) {
			t.Errorf("%+v: %d %s %v", tt.f, status, body, err)
		}
	}
}

func TestRetract(t *testing.T) {
	s := said(t, beginTool(0, "toolu_1", "write"), args(0, `{"a":`))
	if got, want := string(d.Retract(nil, s, 0, "stream_broke")), string(stream(`{"type":"tool_call_cancel","id":"toolu_1","name":"write","reason":"stream_broke"}`)); got != want {
		t.Errorf("got %s want %s", got, want)
	}
	if got, want := string(d.Retract(nil, s, -1, "restart")), string(stream(`{"type":"stream_reset","reason":"restart"}`)); got != want {
		t.Errorf("got %s want %s", got, want)
	}
	mustReceive(t, append(stream(head), d.Retract(nil, s, -1, "restart")...))
}
