package turn

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

// DropMark is the signature of a reasoning block that a restart made worthless;
// whatever carries it is taken out of later requests (DESIGN §3).
const DropMark = "ub1.drop"

// DropMarked reports whether a signature body is that of such a block. Real signatures
// are base64 and hold no dot. The end is enough: an SDK may have put provider bytes in
// front of the mark.
func DropMarked(signature []byte) bool { return bytes.HasSuffix(signature, []byte(DropMark)) }

// Block is one piece of a turn in its place. What every event touches comes first.
type Block struct {
	// Text is an escaped JSON string body: text, reasoning, refusal, or the
	// arguments as they were streamed.
	Text []byte
	Kind BlockKind
	// Stage says how far the block's life on the client's wire has come, in
	// dialects that open and close one in several events; its bits are the
	// dialect's. Zero elsewhere.
	Stage uint8
	// Closed: the provider closed the block (or the turn finished over it).
	Closed bool
	// Withdrawn: the block is on the client's wire, and its index is used up,
	// but it is no longer part of the turn: reasoning that a restart made
	// worthless, or what mode "events" announced as retracted.
	Withdrawn bool
	spoiled   bool // something follows the end of the arguments

	// Extras counts parts that were not understood as text (citations …).
	Extras int
	// Notes are the kept ones among them: raw JSON values, a comma between two.
	Notes []byte
	// Signature is an escaped body; private until Closed.
	Signature []byte
	// Raw is the opening JSON of the block, kept for blocks that live in it.
	Raw []byte

	Choice int
	// Index is the block's index on the client's wire: content_block index,
	// tool_calls index. It equals the provider's while nothing was spliced.
	Index int
	ID    string // decoded
	Name  string // decoded
	args  jsonwalk.Prefix
}

// IsCall reports whether the block is a client-side tool call.
func (b *Block) IsCall() bool { return b.Kind == Call || b.Kind == CustomCall }

// Live reports whether the block is part of the turn.
func (b *Block) Live() bool { return !b.Withdrawn }

// Complete reports whether a tool call may run: it has a name and its arguments
// parse as a JSON object, closed by the provider or not. Empty arguments and
// `{}` count only once the provider closed the call, since some providers send
// `{}` as a placeholder; free-form input counts only when closed (DESIGN §3).
func (b *Block) Complete() bool {
	switch {
	case b.Name == "":
		return false
	case b.Kind == CustomCall:
		return b.Closed
	case b.Kind != Call:
		return false
	case b.blank():
		return b.Closed
	case b.spoiled || b.args.State() != jsonwalk.Complete || b.args.Top() != jsonwalk.KindObject:
		return false
	}
	return !b.args.Empty() || b.Closed
}

// blank reports whether a call has no arguments at all; closed, that means {}.
func (b *Block) blank() bool { return len(b.Text) == 0 }

// Arguments returns the decoded JSON arguments of a complete call.
func (b *Block) Arguments() []byte {
	if b.Kind == Call && b.blank() {
		return []byte("{}")
	}
	return jsonwalk.Unescape(nil, b.Text)
}

// Plain returns the decoded text of the block.
func (b *Block) Plain() []byte { return jsonwalk.Unescape(nil, b.Text) }

// HasWords reports whether the block holds anything but whitespace.
func (b *Block) HasWords() bool {
	if len(b.Text) == 0 {
		return false
	}
	if bytes.IndexByte(b.Text, '\\') < 0 {
		return len(bytes.TrimSpace(b.Text)) > 0
	}
	return len(bytes.TrimSpace(b.Plain())) > 0
}

// End is the semantic end of one choice.
type End struct {
	Why    Why
	Reason string // as the wire spells it
}

// Snapshot is the fold of a turn's deltas. What every event touches comes first.
type Snapshot struct {
	Blocks []Block
	// Ends holds the semantic end per choice, indexed by choice.
	Ends []End
	// Seq is the highest event number, in dialects that number events.
	Seq int64
	// Head is the data of the first identifying event, owned.
	Head []byte
	// Terminated: the dialect's end marker was seen.
	Terminated bool
	// Opaques counts events of unknown meaning.
	Opaques int
	Usage   Usage
	// Held is the name by which the provider holds the generation that goes on in
	// this turn, so that whoever takes the turn over can re-attach to it. Empty: it
	// holds none.
	Held string
}

// Finished reports whether every choice that was seen has its semantic end.
func (s *Snapshot) Finished() bool {
	if len(s.Ends) == 0 {
		return false
	}
	for i := range s.Ends {
		if w := s.Ends[i].Why; w == Unfinished || w == Broken {
			return false
		}
	}
	return true
}

// End returns the semantic end of choice 0.
func (s *Snapshot) End() End {
	if len(s.Ends) == 0 {
		return End{}
	}
	return s.Ends[0]
}

// Last returns the last block, or nil.
func (s *Snapshot) Last() *Block {
	if len(s.Blocks) == 0 {
		return nil
	}
	return &s.Blocks[len(s.Blocks)-1]
}

// NextIndex is the first wire index that was never used: among tool calls only
// (chat), or among all blocks (Messages).
func (s *Snapshot) NextIndex(callsOnly bool) int {
	n := 0
	for i := range s.Blocks {
		if b := &s.Blocks[i]; !callsOnly || b.IsCall() {
			n = max(n, b.Index+1)
		}
	}
	return n
}

// Calls counts the complete and the unfinished client-side tool calls.
func (s *Snapshot) Calls() (complete, unfinished int) {
	for i := range s.Blocks {
		if b := &s.Blocks[i]; b.IsCall() && b.Live() {
			if b.Complete() {
				complete++
			} else {
				unfinished++
			}
		}
	}
	return complete, unfinished
}

// Prose returns the decoded answer text of the turn, all text blocks joined.
func (s *Snapshot) Prose() []byte {
	var out []byte
	for i := range s.Blocks {
		if b := &s.Blocks[i]; b.Kind == Prose && b.Live() {
			out = jsonwalk.Unescape(out, b.Text)
		}
	}
	return out
}

// EstimateTokens guesses, biased low, how many output tokens were said: one per
// four bytes of decoded text, arguments and reasoning. It stands in for a usage
// record that an interruption swallowed (WIRE 2.2).
func (s *Snapshot) EstimateTokens() int64 {
	n := 0
	for i := range s.Blocks {
		n += jsonwalk.DecodedLen(s.Blocks[i].Text)
	}
	return int64(n / 4)
}

// Truncate forgets every block from ordinal n on, the ends and the terminal: what
// an interruption leaves of a turn whose client saw n blocks.
func (s *Snapshot) Truncate(n int) {
	clear(s.Blocks[n:])
	s.Blocks = s.Blocks[:n]
	s.Ends = s.Ends[:0]
	s.Terminated = false
	if b := s.Last(); b != nil && b.Kind == Reasoning && !b.Closed {
		b.Signature = nil
	}
}

// Clone returns a deep copy.
func (s *Snapshot) Clone() *Snapshot {
	c := *s
	c.Head = bytes.Clone(s.Head)
	c.Usage.Raw = bytes.Clone(s.Usage.Raw)
	c.Ends = append([]End(nil), s.Ends...)
	c.Blocks = make([]Block, len(s.Blocks))
	for i := range s.Blocks {
		b := s.Blocks[i]
		b.Text, b.Signature, b.Raw, b.Notes = bytes.Clone(b.Text), bytes.Clone(b.Signature), bytes.Clone(b.Raw), bytes.Clone(b.Notes)
		b.args, b.spoiled = jsonwalk.Prefix{}, false // its copy would share what is deeply nested
		if b.Kind == Call {
			b.argue(b.Text)
		}
		c.Blocks[i] = b
	}
	return &c
}
