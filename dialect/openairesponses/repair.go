package openairesponses

import (
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// Repair takes reasoning items under the drop mark out of the input; everything else keeps its bytes. A body without the
// mark costs one search and comes back as the same slice. What follows such an item stands without it: it came of
// another generation, behind reasoning of its own.
func (Dialect) Repair(body []byte) []byte {
	if !jsonwalk.Has(body, turn.DropMark) {
		return body
	}
	items := jsonwalk.All(jsonwalk.Get(body, "input"))
	patches := jsonwalk.Cut(nil, body, items, func(i int) bool { return dropMarked(items[i]) })
	if len(patches) == 0 {
		return body
	}
	return jsonwalk.ApplySorted(body, patches)
}

func dropMarked(item []byte) bool {
	if text(jsonwalk.Get(item, "type")) != "reasoning" {
		return false
	}
	signature, _ := jsonwalk.String(jsonwalk.Get(item, "encrypted_content"))
	return turn.DropMarked(signature)
}
