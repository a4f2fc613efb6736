package openairesponses

import "github.com/unbroken-llm/unbroken/turn"

// Bits of [turn.Block].Stage: which events of a block's life the client has.
const (
	added uint8 = 1 << iota // output_item.added
	part                    // content_part.added, reasoning_summary_part.added
	told                    // the done event that repeats the part's text, arguments or input
	shut                    // content_part.done, reasoning_summary_part.done
	whole                   // output_item.done, on the first block of the item
	inner                   // no event: of the reasoning text of an item, not of its summary
	alien                   // no event: an Unknown block that is a part of a message, and no item
)

// stage is what of b's life is on the client's wire. Relay opens a text block again when it takes back the held end of
// it, and does not know of stages: an open text has no end.
func stage(b *turn.Block) uint8 {
	if isPart(b.Kind) && !b.Closed {
		return b.Stage &^ (told | shut | whole)
	}
	return b.Stage
}

// isPart reports whether blocks of a kind are parts of an item.
func isPart(k turn.BlockKind) bool {
	return k == turn.Prose || k == turn.Refusal || k == turn.Reasoning
}

// foreign reports whether a block is a part of a type unknown here. Its Notes are the part as content_part.done has it.
func foreign(b *turn.Block) bool { return b.Kind == turn.Unknown && b.Stage&alien != 0 }

// siblings reports whether blocks of two kinds can be parts of one item.
func siblings(a, b turn.BlockKind) bool {
	return isPart(a) && isPart(b) && (a == turn.Reasoning) == (b == turn.Reasoning)
}
