package dialect

import (
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// RepairMessages takes the blocks that marked reports out of the assistant's messages of
// body; everything else keeps its bytes. A body without the drop mark costs one search
// and comes back as the same slice. A message that held nothing else is taken out whole,
// since the providers whose requests look like this refuse an empty one.
func RepairMessages(body []byte, marked func(block []byte) bool) []byte {
	if !jsonwalk.Has(body, turn.DropMark) {
		return body
	}
	messages := jsonwalk.All(jsonwalk.Get(body, "messages"))
	empty := make([]bool, len(messages))
	var patches []jsonwalk.Patch
	for i, m := range messages {
		if role, _ := jsonwalk.String(jsonwalk.Get(m, "role")); !jsonwalk.KeyIs(role, "assistant") {
			continue
		}
		blocks := jsonwalk.All(jsonwalk.Get(m, "content"))
		dropped := 0
		for _, b := range blocks {
			if marked(b) {
				dropped++
			}
		}
		if empty[i] = dropped > 0 && dropped == len(blocks); !empty[i] && dropped > 0 {
			patches = jsonwalk.Cut(patches, body, blocks, func(n int) bool { return marked(blocks[n]) })
		}
	}
	patches = jsonwalk.Cut(patches, body, messages, func(n int) bool { return empty[n] })
	if len(patches) == 0 {
		return body
	}
	return jsonwalk.ApplySorted(body, patches)
}
