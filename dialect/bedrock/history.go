package bedrock

import (
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

var (
	_ dialect.Historian = Converse{}
	_ dialect.Historian = Invoke{}
)

// Answers implements [dialect.Historian].
func (Converse) Answers(body []byte) bool { return jsonwalk.Has(body, `"toolResult"`) }

// History implements [dialect.Historian]. A note is a part of the last result's content: some models refuse text beside
// results.
func (Converse) History(body []byte) dialect.History {
	c := dialect.NewChronicle("")
	for _, m := range jsonwalk.All(jsonwalk.Get(body, "messages")) {
		if plain(jsonwalk.Get(m, "role")) == "assistant" {
			c.Model(m)
			continue
		}
		for _, block := range jsonwalk.All(jsonwalk.Get(m, "content")) {
			if result := jsonwalk.Get(block, "toolResult"); result != nil {
				c.Result(plain(jsonwalk.Get(result, "toolUseId")), endOf(body, jsonwalk.Get(result, "content")))
			}
		}
		c.Other(m)
	}
	return c.History()
}

// endOf is the place of a text behind the parts of a result.
func endOf(body, content []byte) dialect.Place {
	if jsonwalk.KindOf(content) != jsonwalk.KindArray {
		return dialect.Place{}
	}
	p := dialect.Place{At: jsonwalk.Offset(body, content) + 1, Open: `{"text":"`, Close: `"}`}
	if parts := jsonwalk.All(content); len(parts) > 0 {
		last := parts[len(parts)-1]
		p.At, p.Open = jsonwalk.Offset(body, last)+len(last), ","+p.Open
	}
	return p
}
