package relay_test

import (
	"testing"

	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
)

// composed are the same turns in every dialect, which are there when the recordings are not.
func composed(f family) (out []relaytest.Recording) {
	answers := map[string]faultinject.Answer{
		"text": {Finish: faultinject.FinishStop, Blocks: []faultinject.Block{
			{Kind: faultinject.TextBlock, Text: "White storks winter south of the Sahara.\n\nSome stay in “Spain”: 30 % of them, it is said – and \U0001f985 too."},
		}},
		"thinking": {Finish: faultinject.FinishStop, Blocks: []faultinject.Block{
			{Kind: faultinject.ThinkingBlock, Text: "The question is about storks, not about cranes.", Signature: "EqoBsigned=="},
			{Kind: faultinject.TextBlock, Text: "They do so from September on, and return in spring."},
		}},
		"two-calls": {Finish: faultinject.FinishTool, Blocks: []faultinject.Block{
			{Kind: faultinject.TextBlock, Text: "I look both places up before I answer."},
			{Kind: faultinject.ToolBlock, Name: "weather", ID: "toolu_1", Args: `{"city":"Accra","note":"{not} a \"brace\""}`},
			{Kind: faultinject.ToolBlock, Name: "weather", ID: "toolu_2", Args: `{"city":"Kyiv"}`},
		}},
	}
	for _, name := range []string{"text", "thinking", "two-calls"} {
		out = append(out, relaytest.Recording{
			Name: "composed/" + name, Composed: true, Request: []byte(f.fallback),
			Units: f.render(answers[name], faultinject.Options{Model: "m", ID: "A", Seed: 3}),
		})
	}
	return out
}

func TestCutEverywhereComposed(t *testing.T) {
	for _, s := range sections {
		f := s.family
		recs := composed(f)
		switch f.name {
		case legacy.name:
			recs = recs[:1] // the wire has words only
		case interact.name:
			for i := range recs {
				recs[i].Request = jsonwalk.SetMember(nil, recs[i].Request, "store", []byte("false"))
			}
		}
		f.name, f.table = "composed "+f.name, f.as()
		t.Run(f.table, func(t *testing.T) { f.cutEverywhere(t, recs) })
	}
}
