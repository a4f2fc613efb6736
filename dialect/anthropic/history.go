package anthropic

import (
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

var _ dialect.Historian = Dialect{}

// Answers implements [dialect.Historian].
func (Dialect) Answers(body []byte) bool { return jsonwalk.Has(body, `"tool_result"`) }

// History implements [dialect.Historian]. A note is a text block behind the last result, in front of which the API
// refuses one.
func (Dialect) History(body []byte) dialect.History {
	c := dialect.NewChronicle("")
	es := jsonwalk.Elements(jsonwalk.Get(body, "messages"))
	for m, ok := es.Next(); ok; m, ok = es.Next() {
		switch text(jsonwalk.Get(m, "role")) {
		case "system":
		case "assistant":
			c.Model(m)
		default:
			blocks := jsonwalk.Elements(jsonwalk.Get(m, "content"))
			for b, ok := blocks.Next(); ok; b, ok = blocks.Next() {
				if text(jsonwalk.Get(b, "type")) == "tool_result" {
					c.Result(text(jsonwalk.Get(b, "tool_use_id")), dialect.Behind(body, b, "text"))
				}
			}
			c.Other(m)
		}
	}
	return c.History()
}
