package anthropic

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// Repair takes thinking blocks under the drop mark out of the history; everything else keeps its bytes. A body without
// the mark costs one search and comes back as the same slice.
//
// An assistant message that held nothing else is taken out whole, since an empty one is refused (only the last may be
// empty). That leaves two user messages side by side, which the API joins into one; words of our own in between would be
// taken for the model's.
func (Dialect) Repair(body []byte) []byte {
	if !bytes.Contains(body, []byte(turn.DropMark)) {
		return body
	}
	messages := jsonwalk.All(jsonwalk.Get(body, "messages"))
	empty := make([]bool, len(messages))
	var patches []jsonwalk.Patch
	for i, m := range messages {
		if text(jsonwalk.Get(m, "role")) != "assistant" {
			continue
		}
		blocks := jsonwalk.All(jsonwalk.Get(m, "content"))
		dropped := 0
		for _, b := range blocks {
			if dropMarked(b) {
				dropped++
			}
		}
		if empty[i] = dropped > 0 && dropped == len(blocks); !empty[i] && dropped > 0 {
			patches = jsonwalk.Cut(patches, body, blocks, func(n int) bool { return dropMarked(blocks[n]) })
		}
	}
	patches = jsonwalk.Cut(patches, body, messages, func(n int) bool { return empty[n] })
	if len(patches) == 0 {
		return body
	}
	return jsonwalk.ApplySorted(body, patches)
}

// dropMarked reports whether a content block of a request is thinking under the mark.
func dropMarked(block []byte) bool {
	if text(jsonwalk.Get(block, "type")) != "thinking" {
		return false
	}
	signature, _ := jsonwalk.String(jsonwalk.Get(block, "signature"))
	return marked(signature)
}
