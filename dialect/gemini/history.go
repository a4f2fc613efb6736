package gemini

import (
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

var _ dialect.Historian = Dialect{}

// Answers implements dialect.Historian.
func (grammar) Answers(body []byte) bool {
	return jsonwalk.Has(body, `"functionResponse"`) || jsonwalk.Has(body, `"function_response"`)
}

// History implements dialect.Historian. The parts of a content that answers calls
// must be as many as the calls, so that a note is a member of the last response.
func (grammar) History(body []byte) dialect.History {
	c := dialect.NewChronicle("")
	es := jsonwalk.Elements(member(body, "contents"))
	for content, ok := es.Next(); ok; content, ok = es.Next() {
		if string(jsonwalk.Get(content, "role")) == `"model"` {
			c.Model(content)
			continue
		}
		parts := jsonwalk.Elements(jsonwalk.Get(content, "parts"))
		for part, ok := parts.Next(); ok; part, ok = parts.Next() {
			answer := member(part, "functionResponse")
			if answer == nil {
				continue
			}
			call := plain(jsonwalk.Get(answer, "id"))
			if call == "" {
				call = plain(jsonwalk.Get(answer, "name"))
			}
			c.Result(call, dialect.LastOf(body, jsonwalk.Get(answer, "response")))
		}
		c.Other(content)
	}
	return c.History()
}

// member finds a field by either of its names.
func member(obj []byte, name string) (found []byte) {
	w := jsonwalk.Members(obj)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		if is(key, name) {
			found = val
		}
	}
	return found
}
