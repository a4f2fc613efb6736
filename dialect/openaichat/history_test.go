package openaichat

import (
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
)

const (
	chatFirst = `{"model":"m","messages":[{"role":"system","content":"It is 12:01."},{"role":"user","content":"Hi"}]}`
	chatAsks  = `{"role":"user","content":"Hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
)

var histories = []dialecttest.HistoryCase{
	{Name: "at the end of a text", First: chatFirst, Call: "c1", Note: `\n\nw`,
		Later: `{"messages":[` + chatAsks + `,{"role":"tool","tool_call_id":"c1","content":"ok §"}]}`},
	{Name: "an empty text", First: chatFirst, Call: "c1", Note: `w`,
		Later: `{"messages":[` + chatAsks + `,{"role":"tool","tool_call_id":"c1","content":"§"}]}`},
	{Name: "behind the parts of a list", First: chatFirst, Call: "c1", Note: `,{"type":"text","text":"w"}`,
		Later: `{"messages":[` + chatAsks + `,{"role":"tool","content":[ {"type":"text","text":"ok"}§ ],"tool_call_id":"c1"}]}`},
	{Name: "an empty list", First: chatFirst, Call: "c1", Note: `{"type":"text","text":"w"}`,
		Later: `{"messages":[` + chatAsks + `,{"role":"tool","tool_call_id":"c1","content":[§]}]}`},
	{Name: "the last of several results", First: chatFirst, Call: "c1", Note: `\n\nw`,
		Later: `{"messages":[` + chatAsks + `,{"role":"tool","tool_call_id":"c1","content":"a"},{"role":"tool","tool_call_id":"c2","content":"b§"},{"role":"user","content":"go on"}]}`},
	{Name: "an older turn", First: chatFirst, Call: "c1", Note: `\n\nw`,
		Later: `{"messages":[` + chatAsks + `,{"role":"tool","tool_call_id":"c1","content":"a§"},{"role":"assistant","tool_calls":[{"id":"c2"}]},{"role":"tool","tool_call_id":"c2","content":"b"}]}`},
	{Name: "a result without content", First: chatFirst, Call: "c1",
		Later: `{"messages":[` + chatAsks + `,{"role":"tool","tool_call_id":"c1"}]}`},
	{Name: "another system prompt, white space, cache marks, parts", First: chatFirst, Call: "c1", Note: `\n\nw`,
		Later: `{ "messages" : [ {"role":"developer","content":"It is 12:02."}, {"role" : "user", "content" : [ {"type":"text","text":"\u0048i","cache_control":{"type":"ephemeral"}} ]},
			{"role":"assistant","tool_calls":[{"id":"c1"}]}, {"role":"tool","tool_call_id":"c1","content":"ok§"} ] }`},
	{Name: "the caller's own prefill belongs to the turn", First: `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Well"}]}`, Call: "c1", Note: `\n\nw`,
		Later: `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":"Well, ","tool_calls":[{"id":"c1"}]},{"role":"tool","tool_call_id":"c1","content":"ok§"}]}`},
	{Name: "another question", First: chatFirst, Call: "c1", Foreign: true,
		Later: `{"messages":[{"role":"user","content":"Ho"},{"role":"assistant","tool_calls":[{"id":"c1"}]},{"role":"tool","tool_call_id":"c1","content":"ok"}]}`},
	{Name: "another call", First: chatFirst, Call: "c2", Foreign: true,
		Later: `{"messages":[` + chatAsks + `,{"role":"tool","tool_call_id":"c1","content":"ok"}]}`},
	{Name: "a result of nobody's call", First: chatFirst, Call: "c1", Foreign: true,
		Later: `{"messages":[{"role":"user","content":"Hi"},{"role":"tool","tool_call_id":"c1","content":"ok"}]}`},
	{Name: "a picture beside the text", First: chatFirst, Call: "c1", Foreign: true,
		Later: `{"messages":[{"role":"user","content":[{"type":"text","text":"Hi"},{"type":"image_url","image_url":{"url":"x"}}]},{"role":"assistant","tool_calls":[{"id":"c1"}]},{"role":"tool","tool_call_id":"c1","content":"ok"}]}`},
}

func TestHistory(t *testing.T) { dialecttest.Histories(t, Dialect{}, histories) }

func FuzzNotes(f *testing.F) {
	dialecttest.FuzzNotes(f, Dialect{}, dialecttest.Seeds(histories)...)
}
