package splice

// State says whether a seam is decided.
type State uint8

// The states of a seam. Joined and Failed are final.
const (
	Holding State = iota // more than one reading is alive: nothing may be shown yet
	Joined               // what lies behind Verdict.Skip is for the client, and so is all that follows
	Failed               // the continuation does not join: nothing of it may be shown
)

// String names the state.
func (s State) String() string { return [...]string{"holding", "joined", "failed"}[s] }

// Kind says how a continuation joined: one of the bases, with Preamble or Fence or both added when they stood before it.
type Kind uint8

// The kinds.
const (
	Exact      Kind = iota // it goes on
	Whitespace             // it goes on, and white space the client already has was left out
	Anchor                 // it repeated the demanded anchor
	Overlap                // it repeated another tail
	Whole                  // it repeated the answer from its start
	Sentinel               // it said that nothing is missing: the turn is complete, nothing is to be shown
	Empty                  // it said nothing: under true prefill the turn is complete

	Preamble Kind = 1 << 4
	Fence    Kind = 1 << 5

	base = Preamble - 1
)

// String names the kind, for metrics: a closed set.
func (k Kind) String() string {
	s := [...]string{"exact", "whitespace", "anchor", "overlap", "whole", "sentinel", "empty"}[k&base]
	if k&Fence != 0 {
		s = "fence+" + s
	}
	if k&Preamble != 0 {
		s = "preamble+" + s
	}
	return s
}

// Base is the kind without Preamble and Fence.
func (k Kind) Base() Kind { return k & base }

// Reasons of a failed seam, each counted once.
const (
	Diverged   = "diverged"           // it repeats what was shown, then differs before the end of it
	Short      = "short"              // it repeats what was shown and ends before the end of it
	Unanchored = "unanchored"         // asked: no sign that it goes on, and it would glue words or break a line's form
	Talk       = "preamble"           // a preamble that nothing fit to join follows
	Blank      = "empty"              // asked: nothing new was said, and not the sentinel either
	Chatter    = "after_sentinel"     // the sentinel, then more text
	TooLong    = "too_long_undecided" // more than Config.Window bytes and still undecided
)

// Verdict is the answer of a Seam.
type Verdict struct {
	State State
	// Skip counts the bytes at the front of everything pushed so far that are not for the client. It is on a code
	// point boundary of the continuation. It is set when Joined, and with Kind and Overlap also when Blank: who knows that
	// the turn needs no more words (a call follows them) takes the continuation as joined so, white space and all.
	Skip    int
	Kind    Kind
	Overlap int    // bytes of Skip that repeat what the client has, without preamble, fence and white space around
	Reason  string // set only when Failed
}
