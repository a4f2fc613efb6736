package interactions

import (
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
)

const (
	histFirst = `{"model":"m","store":false,"input":[{"type":"user_input","content":[{"type":"text","text":"Hi"}]}]}`
	histAsks  = `{"type":"user_input","content":[{"type":"text","text":"Hi"}]},{"type":"thought","signature":"s"},{"type":"function_call","id":"c1","name":"f","arguments":{}}`
)

var histories = []dialecttest.HistoryCase{
	{Name: "at the end of a text", First: histFirst, Call: "c1", Note: `\n\nw`,
		Later: `{"input":[` + histAsks + `,{"type":"function_result","call_id":"c1","name":"f","result":"ok§"}]}`},
	{Name: "behind the parts of a list", First: histFirst, Call: "c1", Note: `,{"type":"text","text":"w"}`,
		Later: `{"input":[` + histAsks + `,{"type":"function_result","call_id":"c1","result":[{"type":"text","text":"ok"}§]}]}`},
	{Name: "a last member of an object", First: histFirst, Call: "c1", Note: `,"transmission_note":"w"`,
		Later: `{"input":[` + histAsks + `,{"type":"function_result","call_id":"c1","result":{"temp":1§}}]}`},
	{Name: "another question", First: histFirst, Call: "c1", Foreign: true,
		Later: `{"input":[{"type":"user_input","content":"Ho"},{"type":"function_call","id":"c1"},{"type":"function_result","call_id":"c1","result":"ok"}]}`},
}

func TestHistory(t *testing.T) { dialecttest.Histories(t, Dialect{}, histories) }

func FuzzNotes(f *testing.F) {
	dialecttest.FuzzNotes(f, Dialect{}, dialecttest.Seeds(histories)...)
}
