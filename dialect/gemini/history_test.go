package gemini

import (
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
)

const (
	histFirst = `{"systemInstruction":{"parts":[{"text":"12:01"}]},"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}`
	histAsks  = `{"role":"user","parts":[{"text":"Hi"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}`
)

var histories = []dialecttest.HistoryCase{
	{Name: "a last member of the response", First: histFirst, Call: "f", Note: `,"transmission_note":"w"`,
		Later: `{"contents":[` + histAsks + `,{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"ok"§}}}]}]}`},
	{Name: "an empty response", First: histFirst, Call: "f", Note: `"transmission_note":"w"`,
		Later: `{"contents":[` + histAsks + `,{"role":"user","parts":[{"functionResponse":{"name":"f","response":{ §}}}]}]}`},
	{Name: "called by id", First: histFirst, Call: "c1", Note: `,"transmission_note":"w"`,
		Later: `{"contents":[` + histAsks + `,{"role":"function","parts":[{"functionResponse":{"id":"c1","name":"f","response":{"output":1§}}}]}]}`},
	{Name: "the last of several", First: histFirst, Call: "f", Note: `,"transmission_note":"w"`,
		Later: `{"contents":[` + histAsks + `,{"parts":[{"function_response":{"name":"f","response":{"a":1}}},{"function_response":{"name":"g","response":{"a":2§}}}]},{"role":"user","parts":[{"text":"go on"}]}]}`},
	{Name: "no response to put it in", First: histFirst, Call: "f",
		Later: `{"contents":[` + histAsks + `,{"role":"user","parts":[{"functionResponse":{"name":"f"}}]}]}`},
	{Name: "another question", First: histFirst, Call: "f", Foreign: true,
		Later: `{"contents":[{"role":"user","parts":[{"text":"Ho"}]},{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}}]}]}`},
}

func TestHistory(t *testing.T) { dialecttest.Histories(t, Dialect{}, histories) }

func FuzzNotes(f *testing.F) {
	dialecttest.FuzzNotes(f, Dialect{}, dialecttest.Seeds(histories)...)
}
