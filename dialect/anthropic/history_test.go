package anthropic_test

import (
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
)

const (
	histFirst = `{"model":"m","system":"12:01","messages":[{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral"}}]}]}`
	histAsks  = `{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"text","text":"A"},{"type":"tool_use","id":"c1","name":"f","input":{}}]}`
)

var histories = []dialecttest.HistoryCase{
	{Name: "behind the result", First: histFirst, Call: "c1", Note: `,{"type":"text","text":"w"}`,
		Later: `{"messages":[` + histAsks + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"ok"}§]}]}`},
	{Name: "behind the last result and in front of the caller's text", First: histFirst, Call: "c1", Note: `,{"type":"text","text":"w"}`,
		Later: `{"messages":[` + histAsks + `,{"role":"user","content":[ {"type":"tool_result","tool_use_id":"c1"} , {"type":"tool_result","tool_use_id":"c2"}§ , {"type":"text","text":"go on"}]}]}`},
	{Name: "results in two messages", First: histFirst, Call: "c1", Note: `,{"type":"text","text":"w"}`,
		Later: `{"messages":[` + histAsks + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2"}§]}]}`},
	{Name: "an older turn, its cache marks gone", First: histFirst, Call: "c1", Note: `,{"type":"text","text":"w"}`,
		Later: `{"system":"12:02","messages":[` + histAsks + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1"}§]},{"role":"assistant","content":"B"},{"role":"user","content":"C"}]}`},
	{Name: "a turn in two messages", First: histFirst, Call: "c1", Note: `,{"type":"text","text":"w"}`,
		Later: `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"A"},{"role":"assistant","content":[{"type":"tool_use","id":"c1"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1"}§]}]}`},
	{Name: "another question", First: histFirst, Call: "c1", Foreign: true,
		Later: `{"messages":[{"role":"user","content":"Ho"},{"role":"assistant","content":[{"type":"tool_use","id":"c1"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1"}]}]}`},
	{Name: "the same call later on", First: histFirst, Call: "c1", Foreign: true,
		Later: `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"A"},{"role":"user","content":"B"},{"role":"assistant","content":[{"type":"tool_use","id":"c1"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1"}]}]}`},
}

func TestHistory(t *testing.T) { dialecttest.Histories(t, d, histories) }

func FuzzNotes(f *testing.F) { dialecttest.FuzzNotes(f, d, dialecttest.Seeds(histories)...) }
