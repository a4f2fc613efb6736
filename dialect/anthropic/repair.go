package anthropic

import (
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// Repair takes thinking blocks under the drop mark out of the history. An assistant message that held nothing else goes
// whole, since an empty one is refused (only the last may be empty). That leaves two user messages side by side, which
// the API joins into one; words of our own in between would be taken for the model's.
func (Dialect) Repair(body []byte) []byte { return dialect.RepairMessages(body, dropMarked) }

// dropMarked reports whether a content block of a request is thinking under the mark.
func dropMarked(block []byte) bool {
	if text(jsonwalk.Get(block, "type")) != "thinking" {
		return false
	}
	signature, _ := jsonwalk.String(jsonwalk.Get(block, "signature"))
	return turn.DropMarked(signature)
}
