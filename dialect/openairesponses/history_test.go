package openairesponses_test

import (
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
)

const (
	histFirst = `{"model":"m","instructions":"12:01","input":"Hi"}`
	histAsks  = `{"role":"user","content":"Hi"},{"type":"reasoning","id":"rs_1","summary":[]},{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{}"}`
)

var histories = []dialecttest.HistoryCase{
	{Name: "at the end of a text", First: histFirst, Call: "c1", Note: `\n\nw`,
		Later: `{"input":[` + histAsks + `,{"type":"function_call_output","call_id":"c1","output":"ok§"}]}`},
	{Name: "behind the parts of a list", First: histFirst, Call: "c1", Note: `,{"type":"input_text","text":"w"}`,
		Later: `{"input":[` + histAsks + `,{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"ok"}§]}]}`},
	{Name: "custom tools", First: histFirst, Call: "c1", Note: `\n\nw`,
		Later: `{"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]},{"type":"custom_tool_call","call_id":"c1","name":"f","input":"x"},{"type":"custom_tool_call_output","call_id":"c1","output":"ok§"}]}`},
	{Name: "the last of several results", First: histFirst, Call: "c1", Note: `\n\nw`,
		Later: `{"input":[{"role":"developer","content":"12:02"},` + histAsks + `,{"type":"function_call_output","call_id":"c1","output":"a"},{"type":"function_call_output","call_id":"c2","output":"b§"},{"role":"user","content":"go on"}]}`},
	{Name: "a result that is a document takes none", First: histFirst, Call: "c1",
		Later: `{"input":[{"role":"user","content":"Hi"},{"type":"local_shell_call","call_id":"c1"},{"type":"local_shell_call_output","call_id":"c1","output":"{}"}]}`},
	{Name: "on an earlier turn", First: `{"previous_response_id":"resp_0","input":"Hi"}`, Call: "c1", Note: `\n\nw`,
		Later: `{"previous_response_id":"resp_0","input":[` + histAsks + `,{"type":"function_call_output","call_id":"c1","output":"ok§"}]}`},
	{Name: "on another turn", First: `{"previous_response_id":"resp_0","input":"Hi"}`, Call: "c1", Foreign: true,
		Later: `{"previous_response_id":"resp_9","input":[` + histAsks + `,{"type":"function_call_output","call_id":"c1","output":"ok"}]}`},
	{Name: "another question", First: histFirst, Call: "c1", Foreign: true,
		Later: `{"input":[{"role":"user","content":"Ho"},{"type":"function_call","call_id":"c1"},{"type":"function_call_output","call_id":"c1","output":"ok"}]}`},
}

func TestHistory(t *testing.T) { dialecttest.Histories(t, d, histories) }

// A request that names the turn carries its results alone.
func TestResultsOfATurnThatIsNamed(t *testing.T) {
	h := d.History([]byte(`{"previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"c1","output":"ok"}]}`))
	if len(h.Rounds) != 1 || h.Rounds[0].Before != dialect.After("resp_1") || h.Rounds[0].Calls[0] != "c1" || h.Rounds[0].Note.At == 0 {
		t.Fatalf("read %+v", h.Rounds)
	}
}

func FuzzNotes(f *testing.F) { dialecttest.FuzzNotes(f, d, dialecttest.Seeds(histories)...) }
