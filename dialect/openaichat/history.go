package openaichat

import (
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

var _ dialect.Historian = Dialect{}

// Answers implements dialect.Historian.
func (Dialect) Answers(body []byte) bool { return jsonwalk.Has(body, `"tool_call_id"`) }

// History implements dialect.Historian. A note goes to the end of the last result's
// content: a message of its own may not stand between results, and strict hosts
// refuse a user message right behind them.
func (Dialect) History(body []byte) dialect.History {
	c := dialect.NewChronicle("")
	es := jsonwalk.Elements(jsonwalk.Get(body, "messages"))
	for m, ok := es.Next(); ok; m, ok = es.Next() {
		switch plain(jsonwalk.Get(m, "role")) {
		case "system", "developer":
		case "assistant":
			c.Model(m)
		case "tool":
			c.Result(plain(jsonwalk.Get(m, "tool_call_id")), dialect.EndOf(body, jsonwalk.Get(m, "content"), "text"))
			c.Other(m)
		default:
			c.Other(m)
		}
	}
	return c.History()
}
