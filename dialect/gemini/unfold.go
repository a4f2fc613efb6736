package gemini

import (
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/sse"
)

var _ dialect.Unfolder = Dialect{}

// Unfold implements dialect.Unfolder: an answer is a chunk that says everything.
func (Dialect) Unfold(answer []byte) []sse.Event { return []sse.Event{{Data: answer}} }
