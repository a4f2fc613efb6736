package openairesponses

import (
	"slices"
	"strings"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

var _ dialect.Historian = Dialect{}

// Answers implements [dialect.Historian].
func (Dialect) Answers(body []byte) bool { return jsonwalk.Has(body, `_output"`) }

// History implements [dialect.Historian]. What an application answers is an item whose type ends in _output; a note goes
// to the end of its output where that is text.
func (Dialect) History(body []byte) dialect.History {
	c := dialect.NewChronicle(text(jsonwalk.Get(body, "previous_response_id")))
	input := jsonwalk.Get(body, "input")
	if jsonwalk.KindOf(input) == jsonwalk.KindString {
		c.Other(userMessage(input))
		return c.History()
	}
	es := jsonwalk.Elements(input)
	for item, ok := es.Next(); ok; item, ok = es.Next() {
		typ, role := text(jsonwalk.Get(item, "type")), text(jsonwalk.Get(item, "role"))
		switch {
		case role == "system" || role == "developer":
		case role == "assistant":
			c.Model(item)
		case role != "" || typ == "mcp_approval_response":
			c.Other(item)
		case strings.HasSuffix(typ, "_output"):
			c.Result(text(jsonwalk.Get(item, "call_id")), noteIn(body, item, typ))
			c.Other(item)
		default:
			c.Model(item)
		}
	}
	return c.History()
}

// noteIn is where a note goes in a result. What is a document or a picture takes none.
func noteIn(body, item []byte, typ string) dialect.Place {
	switch typ {
	case "function_call_output", "custom_tool_call_output", "apply_patch_call_output":
		return dialect.EndOf(body, jsonwalk.Get(item, "output"), "input_text")
	}
	return dialect.Place{}
}

// userMessage is what input that is text stands for.
func userMessage(text []byte) []byte {
	return slices.Concat([]byte(`{"role":"user","content":`), text, []byte{'}'})
}
