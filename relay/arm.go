package relay

import (
	"bytes"
	"unicode"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/splice"
	"github.com/unbroken-llm/unbroken/turn"
)

// arm prepares the hop that was just opened for the way its events become the
// client's.
func (s *Stream) arm() {
	h := &s.hop
	last := s.lastOpen()
	switch h.mode {
	case pass:
	case joinText:
		h.joint = last
		if s.plan.manner == turn.Provider {
			// Nothing is to be found here: it is known what comes first.
			if r, ok := h.dec.(dialect.Resumer); ok {
				r.Resumed(&s.said)
			}
			h.again, h.skip = s.holds.again, len(s.holds.again)
			return
		}
		s.holds.astray = true // what is said from here on is said behind no point
		said := s.prose()
		if s.plan.manner == turn.Asked {
			guard := splice.NewGuard(s.cfg.Sentinel)
			h.guard = &guard
		}
		h.seat.Said = turn.Measure(said)
		h.seat.Answer = h.seat.Said
		if last >= 0 {
			b := &s.said.Blocks[last]
			h.seat.Block, h.seat.Had = turn.Measure(b.Plain()), len(b.Text)
		}
		if len(bytes.TrimSpace(said)) == 0 {
			// Nothing was said that text could join or a model repeat: what
			// comes is the first text of this turn.
			h.swallow = len(said) > 0
			return
		}
		said = append(bytes.Clone(s.req.Prefill), said...)
		if len(s.req.Stops) > 0 {
			stops := splice.NewStops(s.req.Stops, said)
			h.stops = &stops
		}
		if doc := s.document(); doc != nil && doc.State() == jsonwalk.Incomplete {
			h.doc = doc
		}
		h.seam = splice.New(s.seamConfig(said))
	case joinAnew:
		h.joint = last
		h.swallow = len(s.prose()) > 0
	}
}

// document is the structured answer so far, or nil if the answer is not one. An
// answer that is no JSON to begin with (a model that wraps it in a fence) is
// continued as the text it is.
func (s *Stream) document() *splice.Document {
	if !s.req.Structured {
		return nil
	}
	shape := splice.JSONObject
	if len(s.req.Schema) > 0 {
		shape = splice.AnyJSON
	}
	return splice.NewDocument(s.prose(), shape)
}

// lastOpen is the text block of said that is still open on the client's wire, or
// -1.
func (s *Stream) lastOpen() int {
	n := len(s.said.Blocks) - 1
	if n >= 0 {
		if b := &s.said.Blocks[n]; b.Kind == turn.Prose && b.Live() && !b.Closed {
			return n
		}
	}
	return -1
}

// prose is the text run that a continuation goes on with: the live text that the
// client has. It is also what the continuation request ends with.
func (s *Stream) prose() []byte { return s.said.Prose() }

func (s *Stream) seamConfig(said []byte) splice.Config {
	// The caller's own trailing text is part of the run: it is what the request
	// quotes and the model may repeat.
	c := splice.Config{Said: said, Stripped: trailingSpace(said), JSON: s.hop.doc != nil}
	if s.traits.Appends {
		c.Stripped = 0
	}
	switch {
	case s.plan.manner == turn.Asked:
		c.Manner, c.Anchor, c.Sentinel = splice.Asked, s.cfg.Anchor, s.cfg.Sentinel
		c.Opens, c.Closes = dialect.AnchorOpens, dialect.AnchorCloses
	case s.cfg.Targets[s.target].Ability.Echoes:
		c.Manner = splice.Echoing
	default:
		c.Manner = splice.Prefill
	}
	return c
}

// trailingSpace counts the bytes of white space at the end of b, which a
// continuation request must not end with (Anthropic rejects it, WIRE 2.2).
func trailingSpace(b []byte) int {
	return len(b) - len(bytes.TrimRightFunc(b, unicode.IsSpace))
}
