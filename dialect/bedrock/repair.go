package bedrock

import (
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// Repair takes reasoning under the drop mark out of the history.
func (Converse) Repair(body []byte) []byte { return dialect.RepairMessages(body, dropMarked) }

// dropMarked reports whether a content block of a request is reasoning under the mark.
func dropMarked(block []byte) bool {
	signature, _ := jsonwalk.String(jsonwalk.Get(block, "reasoningContent", "reasoningText", "signature"))
	return turn.DropMarked(signature)
}
