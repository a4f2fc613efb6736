package gemini

import (
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/turn"
)

// Replay implements dialect.Writer: a chunk for each block, and
// behind it what was noted of it. A call that the
// provider ended before its arguments were whole is rendered as it began.
func (Dialect) Replay(dst []byte, _ *dialect.Request, said *turn.Snapshot) []byte {
	id := identify(said.Head)
	before := len(dst)
	for n := range said.Blocks {
		b := &said.Blocks[n]
		if !b.Live() {
			continue
		}
		part := partOf(b)
		if part == nil && b.IsCall() {
			part = b.Raw
		}
		if part != nil {
			dst = frame(dst, said, nil, id.chunk(b.Choice, part, "", nil))
		}
		dst = notes(dst, said, &id, b)
	}
	if len(dst) == before && blocking(said) == nil { // its end is all of it
		return frame(dst, said, nil, id.chunk(0, textPart(nil), "", nil))
	}
	return dst
}
