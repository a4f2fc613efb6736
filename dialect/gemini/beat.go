package gemini

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/turn"
)

// Heartbeat implements dialect.Writer: a chunk with an empty text, as providers end
// turns with (WIRE 3.5). It is the one whole event that every SDK reads and no chat
// session keeps: comments make three of them throw (WIRE 3.4), and a chunk without
// a candidate makes genai for Go drop the whole turn from its history
// (TestHistoryOfAnSDKChatIsTheTurn). Relay drips instead; this is what a drip becomes
// when no event follows.
func (Dialect) Heartbeat(dst []byte, _ *dialect.Request, said *turn.Snapshot) []byte {
	id := identify(said.Head)
	return frame(dst, said, nil, id.chunk(0, textPart(nil), "", nil))
}

// Drip implements dialect.Dripper with what no application ever sees: the beginning
// of the next event's data line and, while it is open, one more space. JSON allows any
// number of them in front of a value.
func (Dialect) Drip(dst []byte, _ *turn.Snapshot, open bool) []byte {
	if open {
		return append(dst, ' ')
	}
	return append(dst, "data: "...)
}

// Undrip implements dialect.Dripper: the first event of b loses the field name that
// stands there already. If b begins with anything else (a comment of the provider's,
// a named event, nothing), the line is first completed as the heartbeat that it can
// still become. A BOM, good only where a stream begins, and blank lines say nothing.
func (d Dialect) Undrip(dst, b []byte, said *turn.Snapshot) []byte {
	b = bytes.TrimLeft(bytes.TrimPrefix(b, []byte(bom)), "\r\n")
	if rest, ok := bytes.CutPrefix(b, []byte("data:")); ok {
		return append(dst, rest...)
	}
	empty := d.Heartbeat(nil, nil, said)
	return append(append(dst, empty[len("data: "):]...), b...)
}
