package interactions

import (
	"strings"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

var _ dialect.Historian = Dialect{}

// Answers implements dialect.Historian.
func (Dialect) Answers(body []byte) bool { return jsonwalk.Has(body, `"function_result"`) }

// History implements dialect.Historian. A note goes to the end of the last result,
// or is a member of one that is an object.
func (Dialect) History(body []byte) dialect.History {
	c := dialect.NewChronicle(plain(jsonwalk.Get(body, "previous_interaction_id")))
	input := jsonwalk.Get(body, "input")
	if jsonwalk.KindOf(input) != jsonwalk.KindArray {
		c.Other(input)
		return c.History()
	}
	es := jsonwalk.Elements(input)
	for step, ok := es.Next(); ok; step, ok = es.Next() {
		switch typ := typeOf(step); {
		case typ == "function_result":
			result := jsonwalk.Get(step, "result")
			end := dialect.LastOf(body, result)
			if end.At == 0 {
				end = dialect.EndOf(body, result, "text")
			}
			c.Result(plain(jsonwalk.Get(step, "call_id")), end)
			c.Other(step)
		case typ == "model_output", typ == "thought", strings.HasSuffix(typ, "_call"), strings.HasSuffix(typ, "_result"):
			c.Model(step)
		default:
			c.Other(step)
		}
	}
	return c.History()
}
