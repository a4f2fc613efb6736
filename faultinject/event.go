package faultinject

// A Kind classifies one event of a stream, so that faults can be addressed by
// what happens rather than by number.
type Kind string

// The kinds of event. In Chat several facts may share a chunk; the kind is
// then the first of them in this order that the chunk carries: finish, tool,
// text, thinking, usage, start.
const (
	KindStart     Kind = "start"     // message_start, the role delta
	KindOpen      Kind = "open"      // content_block_start of text or thinking
	KindThinking  Kind = "thinking"  // a reasoning delta
	KindSignature Kind = "signature" // signature_delta
	KindText      Kind = "text"      // a text or refusal delta
	KindTool      Kind = "tool"      // a tool call is opened: id and name
	KindArgs      Kind = "tool-args" // a fragment of arguments
	KindClose     Kind = "close"     // content_block_stop
	KindFinish    Kind = "finish"    // finish_reason, message_delta
	KindUsage     Kind = "usage"     // the usage chunk of Chat
	KindEnd       Kind = "end"       // message_stop, [DONE]
	KindPause     Kind = "pause"     // the stream ends, the turn does not: Gemini's CONTINUATION
	KindPing      Kind = "ping"      // ping, or a comment
	KindOther     Kind = "other"     // anything else a real provider sends
)

// kinds lists every kind, for the script parser.
var kinds = []Kind{
	KindStart, KindOpen, KindThinking, KindSignature, KindText, KindTool, KindArgs,
	KindClose, KindFinish, KindUsage, KindEnd, KindPause, KindPing, KindOther,
}

// An Event is one SSE event as it goes on the wire, its blank line included.
type Event struct {
	Kind Kind
	Raw  []byte
}

// Raws returns the bytes of each event.
func Raws(events []Event) [][]byte {
	out := make([][]byte, len(events))
	for i, e := range events {
		out[i] = e.Raw
	}
	return out
}
