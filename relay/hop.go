package relay

import (
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/splice"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// joinMode says how an attempt's events become the client's.
type joinMode uint8

const (
	// pass: the client has nothing yet; bytes go through unchanged.
	pass joinMode = iota
	// joinText: the attempt continues the text that the client has.
	joinText
	// joinAnew: the attempt is the whole turn again, under the identity that
	// the client already has.
	joinAnew
	// joinSame: the attempt is the generation that the client has part of, from its
	// start.
	joinSame
	// reattach: the attempt is the last one on another connection, and goes on as
	// that one was joined.
	reattach
)

func (m joinMode) String() string {
	return [...]string{"pass", "join_text", "join_anew", "join_same", "reattach"}[m]
}

// hop is the state of one attempt's event stream; its fields are ordered as those of
// [Stream] are.
type hop struct {
	scan  dialect.Scanner
	dec   dialect.Decoder
	track dialect.Tracker  // its decoder, where the provider may hold the generation; else nil
	veil  dialect.Veiler   // its decoder, if the client sees other events; else nil
	short dialect.Repeater // its decoder, if its events may go the short way (more); else nil
	ds    []turn.Delta
	torn  []owned // an event whose text ends inside a surrogate pair, and silent ones behind it

	mode      joinMode
	known     bool // the body is an event stream
	any       bool // at least one event came
	fresh     bool // it brought the client something new
	crlf      bool // its lines end in CRLF
	counted   bool // the last event was nothing but a usage record
	whole     bool // it is another attempt's generation, which is to come from its start
	grasped   bool // the provider does hold it
	elsewhere bool // it was attached to again: what comes may have been here before
	framed    bool // its units are those of a dialect.Framed

	lines sse.Scanner // what scan is, unless the dialect is framed otherwise

	early []byte // first bytes, while it is not known what the body is

	kinds []turn.BlockKind // of its blocks, as they arrived
	place []int            // its block -> block of said; -1: suppressed

	joint     int // the block of said that its first text goes on with; -1: none
	jointUsed bool
	seam      *splice.Seam   // while the join is undecided
	verdict   splice.Verdict // of the seam; what remains then are the stops
	stops     *splice.Stops  // stop sequences that may straddle the seam
	stop      string         // the one that did
	plain     []byte         // decoded text that the seam has seen
	queue     []owned        // events that wait for the decision
	again     []byte         // decoded text that it has to begin with
	seat      turn.Joint     // where its text joins
	skip      int            // decoded bytes at the front of its text that the client has
	swallow   bool           // leading whitespace was already shown
	mute      bool           // its text is only the sentinel, with nowhere to go
	guard     *splice.Guard  // against the sentinel behind new text, asked hops only
	heard     int            // decoded bytes of its text that the guard has seen
	passed    int            // decoded bytes of its text that were edited
	limit     int            // of those, how many may be shown; -1: all
	doc       *splice.Document
	same      *same // what the client has of it, in joinSame
}

func (h *hop) start(d dialect.Dialect, dec dialect.Decoder, m joinMode, maxEvent int) {
	ds, lines := h.ds[:0], h.lines
	*h = hop{lines: lines, dec: dec, mode: m, ds: ds, joint: -1, limit: -1}
	h.rescan(d, maxEvent)
}

// rescan makes the hop's scanner that of another body.
func (h *hop) rescan(d dialect.Dialect, maxEvent int) {
	if f, ok := d.(dialect.Framed); ok {
		h.framed, h.scan = true, f.NewScanner(maxEvent)
		return
	}
	h.lines.Reset()
	h.lines.Limit = maxEvent
	h.scan = &h.lines
}

// streamType is the media type of d's streams, "" for event streams.
func streamType(d dialect.Dialect) string {
	if f, ok := d.(dialect.Framed); ok {
		return f.ContentType()
	}
	return ""
}

// owned is an event and its deltas, copied out of the read buffer.
type owned struct {
	e  sse.Event
	ds []turn.Delta
}

// own copies e and ds. Texts are re-sliced, not copied again, where they alias
// the event's data.
func own(e sse.Event, ds []turn.Delta) owned {
	o := owned{ds: append([]turn.Delta(nil), ds...)}
	o.e = sse.Event{Name: cloned(e.Name), Data: cloned(e.Data), Raw: cloned(e.Raw)}
	for i := range o.ds {
		d := &o.ds[i]
		d.ID, d.Name, d.Text = cloned(d.ID), cloned(d.Name), cloned(d.Text)
		d.Raw, d.Usage.Raw = cloned(d.Raw), cloned(d.Usage.Raw)
	}
	return o
}

// cloned copies b and keeps nil nil, since an event without data is not one
// with empty data.
func cloned(b []byte) []byte {
	if b == nil {
		return nil
	}
	return append(make([]byte, 0, len(b)), b...)
}
