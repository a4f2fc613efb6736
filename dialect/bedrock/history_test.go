package bedrock

import (
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
)

const (
	histFirst = `{"system":[{"text":"12:01"}],"messages":[{"role":"user","content":[{"text":"Hi"},{"cachePoint":{"type":"default"}}]}]}`
	histAsks  = `{"role":"user","content":[{"text":"Hi"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"c1","name":"f","input":{}}}]}`
)

var histories = []dialecttest.HistoryCase{
	{Name: "behind the parts of a result", First: histFirst, Call: "c1", Note: `,{"text":"w"}`,
		Later: `{"messages":[` + histAsks + `,{"role":"user","content":[{"toolResult":{"toolUseId":"c1","content":[{"json":{"a":1}}§]}}]}]}`},
	{Name: "an empty result", First: histFirst, Call: "c1", Note: `{"text":"w"}`,
		Later: `{"messages":[` + histAsks + `,{"role":"user","content":[{"toolResult":{"toolUseId":"c1","content":[§]}}]}]}`},
	{Name: "the last of several", First: histFirst, Call: "c1", Note: `,{"text":"w"}`,
		Later: `{"messages":[` + histAsks + `,{"role":"user","content":[{"toolResult":{"toolUseId":"c1","content":[{"text":"a"}]}},{"toolResult":{"toolUseId":"c2","content":[{"text":"b"}§]}},{"text":"go on"}]}]}`},
	{Name: "another question", First: histFirst, Call: "c1", Foreign: true,
		Later: `{"messages":[{"role":"user","content":[{"text":"Ho"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"c1"}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"c1","content":[]}}]}]}`},
}

func TestHistory(t *testing.T) { dialecttest.Histories(t, Converse{}, histories) }

func FuzzNotes(f *testing.F) {
	dialecttest.FuzzNotes(f, Converse{}, dialecttest.Seeds(histories)...)
}
