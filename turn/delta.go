package turn

// Kind says what a [Delta] adds to a turn.
type Kind uint8

const (
	// Skip is a delta that was taken out: it says nothing. Relay uses it to
	// tell a dialect's Rewrite which parts of a later attempt's event must not
	// reach the client.
	Skip Kind = iota
	// Head identifies the message: chat's first chunk, message_start. Raw is
	// the event's data. Heads are replayable and never "visible" (DESIGN §5).
	Head
	// Open begins Block: Of, ID, Name; Raw holds the opening JSON of a block
	// whose content is (partly) in its opening event.
	Open
	// Text adds Text to Block: answer text, reasoning, refusal or the raw
	// arguments of a tool call, by the block's kind.
	Text
	// Sign adds Text to the signature of a reasoning block. It is private
	// until the block closes (FIELD-REPORTS D7).
	Sign
	// Extra adds something to Block that is not text and cannot be continued
	// (citations, annotations, logprobs). Raw is the event's data.
	Extra
	// Close says the provider closed Block. Raw, if any, is the whole of it as
	// the provider sums it up, and replaces the opening's.
	Close
	// Count is a usage record. The last one wins.
	Count
	// Finish is the semantic end of Choice: finish_reason, stop_reason.
	Finish
	// Terminal is the dialect's end marker: message_stop, [DONE].
	Terminal
	// Pulse is a sign of life without content: a ping, an empty delta.
	Pulse
	// Fault is an error that the provider reported inside a 200 stream.
	Fault
	// Opaque is a valid event of unknown meaning. It is forwarded, never
	// dropped; Raw is the event's data. Block is -1 unless the event names one.
	Opaque
)

var kindNames = [...]string{"skip", "head", "open", "text", "sign", "extra", "close", "count", "finish", "terminal", "pulse", "fault", "opaque"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind?"
}

// Delta is one observed increment. Byte slices alias the event they were decoded
// from and are valid as long as it is; [Snapshot.Fold] copies what it keeps.
type Delta struct {
	Kind   Kind
	Of     BlockKind // Open
	Why    Why       // Finish
	Stage  uint8     // Open, Text, Extra, Close: bits to add to [Block].Stage
	Keep   bool      // Extra: keep Raw in [Block].Notes
	Part   bool      // Open: no block of its own on the wire, but a part of the item that the block before it is in
	Sum    bool      // Extra: no part, but the block as its provider sums it up; Raw replaces [Block].Raw
	Block  int       // ordinal of the block within its attempt, from 0
	Choice int       // chat's choices[].index; 0 elsewhere
	Index  int       // Open: the block's index on the wire, see [Block].Index
	Seq    int64     // number of the event, in dialects that number them
	ID     []byte    // Open: the call id (escaped body)
	Name   []byte    // Open: the tool or block-type name (escaped body)
	Text   []byte    // Text, Sign: escaped body. Finish: the reason as the wire spells it
	Raw    []byte    // JSON, see Kind
	Joint  *Joint    // Extra of an attempt that joins the client's text
	Usage  Usage     // Count
	Fault  *WireFault
}

// More is text that goes on in a block, which is what nearly every event of a stream
// says: a [Delta] of kind Text with nothing else in it. Text is not empty.
type More struct {
	Block int
	Stage uint8
	Text  []byte
}

// Untold is the bit of [Block].Stage that no dialect has for itself: the block holds
// an extra that was too much to be kept, so that it cannot be told again as it was.
const Untold uint8 = 1 << 7

// BlockKind is what a block holds.
type BlockKind uint8

const (
	// Prose is answer text.
	Prose BlockKind = iota + 1
	// Reasoning is thinking, signed or not.
	Reasoning
	// Redacted is reasoning whose content is opaque data in its opening event.
	Redacted
	// Call is a client-side tool call with JSON arguments.
	Call
	// CustomCall is a client-side tool call with free-form input: complete only
	// when the provider closed it.
	CustomCall
	// Refusal is refusal text.
	Refusal
	// Hosted is a tool call that runs at the provider.
	Hosted
	// HostedResult is the result of a Hosted call, whole in its opening event.
	HostedResult
	// Unknown is a block of a type this house does not know. It passes through;
	// it can be neither continued nor rebuilt.
	Unknown
)

var blockNames = [...]string{"none", "text", "reasoning", "redacted", "call", "custom_call", "refusal", "hosted", "hosted_result", "unknown"}

func (k BlockKind) String() string {
	if int(k) < len(blockNames) {
		return blockNames[k]
	}
	return "block?"
}

// Why is the meaning of a finish reason, folded over the dialects.
type Why uint8

const (
	// Unfinished: no semantic end was seen.
	Unfinished Why = iota
	// Stopped: a natural end or a stop sequence.
	Stopped
	// Length: an output or context limit; a normal end (FIELD-REPORTS A9).
	Length
	// ToolUse: the turn asks for tool calls.
	ToolUse
	// Filtered: content filter or refusal; permanent.
	Filtered
	// Paused: the provider ended the turn to be continued by the caller.
	Paused
	// Broken: a finish reason that is really a provider failure
	// (finish_reason "error", "insufficient_system_resource").
	Broken
	// OtherEnd: any other reason; a normal end.
	OtherEnd
)

var whyNames = [...]string{"unfinished", "stopped", "length", "tool_use", "filtered", "paused", "broken", "other"}

func (w Why) String() string {
	if int(w) < len(whyNames) {
		return whyNames[w]
	}
	return "why?"
}

// Usage is a provider's token count. Input and Output are totals of the turn so
// far as that provider counts them.
type Usage struct {
	Known         bool
	Input, Output int64
	Raw           []byte // the usage object as the wire spells it
}

// WireFault is an error as a provider spelled it in-band. The strings are
// decoded and owned.
type WireFault struct {
	Type, Code, Message string
	Status              int // HTTP status named by the error itself; 0 if none
}

// Manner is how an unfinished turn can be continued on a target, best first
// (DESIGN §4).
type Manner uint8

const (
	// NoManner: the target cannot continue a turn.
	NoManner Manner = iota
	// Provider: the provider holds the generation; re-attach at a cursor.
	Provider
	// Prefill: a trailing assistant turn is continued by the model.
	Prefill
	// Asked: the partial assistant turn, then a short user turn that asks to go on.
	Asked
)

var mannerNames = [...]string{"none", "resume", "prefill", "asked"}

func (m Manner) String() string {
	if int(m) < len(mannerNames) {
		return mannerNames[m]
	}
	return "manner?"
}
