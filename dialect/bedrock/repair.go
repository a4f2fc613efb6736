package bedrock

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// marked reports whether a signature body is that of reasoning which a restart left behind (DESIGN §3). Real signatures
// are base64 and hold no dot. The end is enough: an SDK may have put provider bytes in front of the mark.
func marked(signature []byte) bool { return bytes.HasSuffix(signature, []byte(turn.DropMark)) }

// Repair takes reasoning under the drop mark out of the history; everything else keeps its bytes. A body without the
// mark costs one search and comes back as the same slice. An assistant message that held nothing else is taken out whole,
// since an empty one is refused.
func (Converse) Repair(body []byte) []byte {
	if !bytes.Contains(body, []byte(turn.DropMark)) {
		return body
	}
	messages := jsonwalk.All(jsonwalk.Get(body, "messages"))
	empty := make([]bool, len(messages))
	var patches []jsonwalk.Patch
	for i, m := range messages {
		if plain(jsonwalk.Get(m, "role")) != "assistant" {
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

// dropMarked reports whether a content block of a request is reasoning under the mark.
func dropMarked(block []byte) bool {
	signature, _ := jsonwalk.String(jsonwalk.Get(block, "reasoningContent", "reasoningText", "signature"))
	return marked(signature)
}
