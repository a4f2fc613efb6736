package relay

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/splice"
	"github.com/unbroken-llm/unbroken/turn"
)

// cutoff says whether the client's text ends inside an event.
type cutoff uint8

const (
	noCut       cutoff = iota
	cutDocument        // at the end of the JSON document
	cutInvalid         // the document turned invalid
	cutAstray          // what was to be said again is something else
)

// trim takes out of a text delta what the client already has, and what comes
// after the end of its text.
func (s *Stream) trim(d *turn.Delta) cutoff {
	h := &s.hop
	said := d.Text
	if h.guard != nil {
		d.Text = h.within(said)
	}
	if len(h.again) > 0 {
		plain := jsonwalk.Unescape(nil, d.Text)
		n := min(len(plain), len(h.again))
		if !bytes.Equal(plain[:n], h.again[:n]) {
			return cutAstray
		}
		h.again = h.again[n:]
	}
	if h.skip > 0 {
		if jsonwalk.DecodedLen(d.Text) <= h.skip {
			h.skip -= min(h.skip, jsonwalk.DecodedLen(said)) // a sentinel that was cut was said
			d.Kind = turn.Skip
			return noCut
		}
		d.Text = jsonwalk.CutBody(d.Text, h.skip)
		h.skip = 0
	}
	if h.swallow {
		plain := jsonwalk.Unescape(nil, d.Text)
		n := len(plain) - len(bytes.TrimLeft(plain, " \t\r\n"))
		white := turn.Measure(plain[:n])
		h.seat.Answer, h.seat.Block = h.seat.Answer.Minus(white), h.seat.Block.Minus(white)
		d.Text = jsonwalk.CutBody(d.Text, n)
		h.swallow = len(d.Text) == 0
	}
	cut := noCut
	if h.doc != nil && len(d.Text) > 0 {
		cut = s.curb(d)
	}
	if len(d.Text) == 0 {
		d.Kind = turn.Skip
	}
	return cut
}

// strayed ends an attempt that was to say again what the provider said before, and
// says something else.
func (s *Stream) strayed() {
	s.note(Note{Kind: NoteSeam, Reason: "diverged", Manner: s.plan.manner})
	s.interrupted(interrupt.Cause{Kind: interrupt.SeamFailed, Type: "diverged", Message: "the provider does not say again what it said"})
}

// within cuts a text at the sentinel.
func (h *hop) within(body []byte) []byte {
	n := jsonwalk.DecodedLen(body)
	room := max(0, h.limit-h.passed)
	h.passed += n
	if h.limit < 0 || room >= n {
		return body
	}
	plain := jsonwalk.Unescape(nil, body)
	return jsonwalk.Escape(nil, bytes.TrimRight(plain[:room], " \t\r\n"))
}

// curb ends a structured answer's text where its document ends.
func (s *Stream) curb(d *turn.Delta) cutoff {
	plain := jsonwalk.Unescape(nil, d.Text)
	keep, st := s.hop.doc.Push(plain)
	switch st {
	case jsonwalk.Invalid:
		return cutInvalid
	case jsonwalk.Complete:
		if keep == len(plain) {
			return noCut // its own finish follows
		}
		d.Text = jsonwalk.Escape(nil, plain[:keep])
		if len(bytes.TrimSpace(plain[keep:])) > 0 {
			return cutDocument
		}
	case jsonwalk.Incomplete:
	}
	return noCut
}

// fitsSchema checks a structured answer that was spliced, before its end is let
// out (DESIGN §3).
func (s *Stream) fitsSchema() bool {
	if s.hop.doc == nil || len(s.req.Schema) == 0 {
		return true
	}
	if !s.schemed {
		// An error: not checkable here; the document itself is whole.
		s.schemed = true
		s.schema, _ = splice.NewSchema(s.req.Schema)
	}
	return s.schema == nil || s.schema.Check(s.prose()) == nil
}

func (s *Stream) mismatch() {
	s.fail(interrupt.Cause{Kind: interrupt.SeamFailed, Type: "schema_mismatch"}, "schema_mismatch", false)
}
