package relay

import (
	"bytes"
	"errors"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// feed takes body bytes of an event stream.
func (s *Stream) feed(b []byte) {
	h := &s.hop
	s.watch.Bytes(s.now)
	if !h.known {
		if b = s.recognise(b); b == nil {
			return
		}
	}
	h.scan.Push(b)
	n := s.attempt
	for s.attempt == n && (s.phase == reading || s.phase == closing) {
		e, ok := h.scan.Next()
		if !ok {
			break
		}
		s.unit(e)
	}
	if err := h.scan.Err(); err != nil && s.attempt == n && s.phase == reading {
		s.interrupted(interrupt.Cause{Kind: interrupt.Malformed, Type: "event_too_large", Message: err.Error()})
	}
}

// recognise looks at the first bytes of a 2xx body. It returns the bytes to
// scan, or nil when there is nothing to scan (yet).
func (s *Stream) recognise(b []byte) []byte {
	h := &s.hop
	if len(h.early) > 0 {
		h.early = append(h.early, b...)
		b = h.early
	}
	switch sniff(b, h.framed) {
	case undecided:
		if len(h.early) == 0 {
			h.early = cloned(b)
		}
		return nil
	case page:
		s.interrupted(interrupt.Cause{Kind: interrupt.EmptyAnswer, Status: 502, Type: "html", Message: "the provider answered a page instead of a stream"})
		return nil
	case document:
		if s.visible || s.gate || s.plan.manner == turn.Provider {
			s.interrupted(interrupt.Cause{Kind: interrupt.EmptyAnswer, Status: 502, Type: "json", Message: "the provider answered a document instead of a stream"})
			return nil
		}
		s.body = append(s.body[:0], b...)
		s.phase = whole
		return nil
	case events:
	}
	h.known, h.early = true, nil
	return b
}

// unit takes one unit of the stream: a comment, or an event.
func (s *Stream) unit(e sse.Event) {
	h := &s.hop
	if h.short != nil && s.more(e) {
		return
	}
	if e.Comment() {
		if e.Stray() != nil && s.strayFault(e) {
			return
		}
		switch {
		case len(h.torn) > 0:
			h.torn = append(h.torn, own(e, nil))
		case h.seam == nil:
			s.pass(e.Raw)
		}
		return
	}
	if e.Data != nil && (len(e.Data) == 0 || e.Data[0] == ':') {
		// A comment that some gateway turned into data; SDKs throw on it
		// (FIELD-REPORTS B7).
		return
	}
	if h.elsewhere && h.track.Repeated(e) {
		h.any = true
		return
	}
	if h.veil != nil {
		var seen bool
		if e, seen = h.veil.Veil(e); !seen {
			h.any = true
			return
		}
	}
	ds, err := h.dec.Decode(h.ds[:0], e)
	h.ds = ds[:0]
	s.sum.Events++
	h.crlf = bytes.HasSuffix(e.Raw, []byte("\r\n"))
	if err != nil {
		s.invalid(err)
		return
	}
	if h.whole && !silent(ds) {
		if h.whole = false; !hasHead(ds) {
			s.invalid(errNoStart)
			return
		}
	}
	h.any = true
	if h.track != nil && !h.grasped {
		s.grasp()
	}
	switch {
	case len(h.torn) == 0:
	case silent(ds), h.mode == pass && torn(ds) && len(h.torn) < maxTorn:
		h.torn = append(h.torn, own(e, ds))
		return
	case s.breaks(ds):
		h.torn = nil // the other half never comes
	case !s.untear(ds):
		return
	}
	if torn(ds) {
		h.torn = append(h.torn, own(e, ds))
		return
	}
	s.event(e, ds)
}

// more is the short way of nearly every event: text that goes on in the block where the
// one before it left off, in an attempt that passes as it comes, with nothing held and
// nothing waiting. It does what the long way does with such an event, which is most of
// what a stream costs; any other event it leaves alone and reports false.
func (s *Stream) more(e sse.Event) bool {
	h := &s.hop
	if s.phase != reading || s.holding || len(h.torn) > 0 {
		return false
	}
	m, ok := h.short.More(e)
	if !ok || jsonwalk.EndsInHighSurrogate(m.Text) {
		return false
	}
	b := s.said.GoOn(m)
	if b == nil {
		return false // the long way says what is wrong with it
	}
	s.sum.Events++
	h.crlf = bytes.HasSuffix(e.Raw, []byte("\r\n"))
	h.any, h.counted = true, false
	s.spoke(b, len(m.Text))
	if s.tooLarge() {
		return true
	}
	if b.IsCall() && !s.cfg.Events && !b.Complete() {
		s.odd = errUnwhole // nothing is held, so it is out
	}
	s.pass(e.Raw)
	if !b.IsCall() || s.cfg.Events {
		s.show()
	}
	return true
}

var errNoStart = errors.New("what the provider holds did not come from its start")

// invalid takes an event that the dialect cannot make sense of: not JSON, or one
// that would begin a second message or write over a block (FIELD-REPORTS D1, D2).
// What is merely unknown or oddly shaped was decoded and goes through.
func (s *Stream) invalid(err error) {
	if s.phase == reading {
		s.interrupted(interrupt.Cause{Kind: interrupt.Malformed, Type: "invalid_event", Message: err.Error()})
	}
}

// strayFault recognises an error that a provider wrote as no event at all: llama.cpp's
// bare `error: {…}` line, Gemini's JSON behind the last event (WIRE 1.1, 1.4).
func (s *Stream) strayFault(e sse.Event) bool {
	ds, err := s.hop.dec.Decode(s.hop.ds[:0], e)
	if err != nil {
		return false
	}
	for i := range ds {
		if ds[i].Kind == turn.Fault {
			s.hop.any = true
			s.fault(e, *ds[i].Fault)
			return true
		}
	}
	return false
}

// torn reports whether the event's last text ends inside a surrogate pair. Such
// an event waits for the next one, so that no cut can split a character
// (FIELD-REPORTS C6).
func torn(ds []turn.Delta) bool {
	for i := len(ds) - 1; i >= 0; i-- {
		if ds[i].Kind == turn.Text {
			return jsonwalk.EndsInHighSurrogate(ds[i].Text)
		}
	}
	return false
}

// maxTorn bounds how many events wait for the other half of a character; each of
// them ends in one, or says nothing.
const maxTorn = 64

// untear lets go what waited for the other half of a character, which is in ds if it
// is anywhere. It reports whether the attempt goes on.
func (s *Stream) untear(ds []turn.Delta) bool {
	h := &s.hop
	waited := h.torn
	h.torn = nil
	if h.mode != pass {
		mend(waited[0].ds, ds)
	}
	n := s.attempt
	for _, o := range waited {
		if o.e.Comment() {
			if h.seam == nil {
				s.emit(o.e.Raw)
			}
			continue
		}
		s.event(o.e, o.ds)
		if s.attempt != n || s.phase != reading && s.phase != closing {
			return false
		}
	}
	return true
}

// silent reports whether an event says nothing: a ping, an empty delta.
func silent(ds []turn.Delta) bool {
	for i := range ds {
		if d := &ds[i]; d.Kind != turn.Pulse && d.Kind != turn.Skip && (d.Kind != turn.Text || len(d.Text) > 0) {
			return false
		}
	}
	return true
}

// breaks reports whether an event ends the attempt without an end of the turn.
func (s *Stream) breaks(ds []turn.Delta) bool {
	for i := range ds {
		if d := &ds[i]; d.Kind == turn.Fault || d.Kind == turn.Finish && d.Why == turn.Broken || s.premature(d, ds) {
			return true
		}
	}
	return false
}

// premature reports whether d, of the event ds, is an end marker before the end.
func (s *Stream) premature(d *turn.Delta, ds []turn.Delta) bool {
	return d.Kind == turn.Terminal && !s.ends && !finishes(ds) && !s.said.Finished() && !s.endsUncalled()
}

// endsUncalled reports whether the turn may end without a semantic end: on a host
// that never gives one, behind its usage record, and not over an unfinished call.
func (s *Stream) endsUncalled() bool {
	_, unfinished := s.said.Calls()
	return s.hop.counted && unfinished == 0 && s.cfg.Targets[s.target].Ability.NoFinish
}

// mend moves the half of a surrogate pair that ends the texts of ds to the half
// that begins those of next, so that whoever reads decoded text reads a character.
func mend(ds, next []turn.Delta) {
	for i := len(ds) - 1; i >= 0; i-- {
		d := &ds[i]
		if d.Kind != turn.Text {
			continue
		}
		for j := range next {
			n := &next[j]
			if n.Kind != turn.Text || len(n.Text) == 0 {
				continue
			}
			if n.Block == d.Block && n.Text[0] == '\\' {
				at := len(d.Text) - len(`\ud83d`)
				n.Text = append(cloned(d.Text[at:]), n.Text...)
				if d.Text = d.Text[:at]; at == 0 {
					d.Kind = turn.Skip
				}
			}
			return
		}
		return
	}
}

// event takes one decoded event.
func (s *Stream) event(e sse.Event, ds []turn.Delta) {
	for i := range ds {
		switch d := &ds[i]; {
		case d.Kind == turn.Count:
			s.tokens.count(d.Usage)
		case d.Kind == turn.Fault:
			s.fault(e, *d.Fault)
			return
		case d.Kind == turn.Finish && d.Why == turn.Broken:
			s.fault(e, turn.WireFault{Type: string(d.Text), Status: 502})
			return
		case s.premature(d, ds):
			// An end marker without a semantic end is no end (WIRE 1.7).
			s.interrupted(interrupt.Cause{Kind: interrupt.TruncatedEOF, Message: "end marker without a finish"})
			return
		}
	}
	if s.phase == closing && !s.d.Traits().Marker && goesOn(ds) {
		s.terminate() // the finish was the terminal event; nothing behind it is the turn's (FIELD-REPORTS A8)
		return
	}
	s.hop.counted = countOnly(ds)
	if s.hop.mode == pass {
		s.admit(e, ds, false)
		return
	}
	s.join(e, ds)
}

// goesOn reports whether an event begins or says something, rather than counting or
// describing what was said.
func goesOn(ds []turn.Delta) bool {
	for i := range ds {
		switch d := &ds[i]; d.Kind {
		case turn.Head, turn.Open, turn.Finish:
			return true
		case turn.Text:
			if len(d.Text) > 0 {
				return true
			}
		}
	}
	return false
}

// countOnly reports whether an event is the usage record of a whole turn: hosts
// that give no finish_reason at all (Snowflake) end with one and [DONE].
func countOnly(ds []turn.Delta) bool {
	count := false
	for i := range ds {
		switch ds[i].Kind {
		case turn.Count:
			count = true
		case turn.Skip, turn.Pulse:
		default:
			return false
		}
	}
	return count
}

func finishes(ds []turn.Delta) bool {
	for i := range ds {
		if ds[i].Kind == turn.Finish {
			return true
		}
	}
	return false
}

// fault is an error inside the stream. After the semantic end nothing is an
// interruption.
func (s *Stream) fault(e sse.Event, f turn.WireFault) {
	if s.phase == closing {
		s.terminate()
		return
	}
	c := interrupt.FromFault(f)
	if !s.first.set {
		s.first.raw = cloned(e.Data)
	}
	s.interrupted(c)
}

// endOfEvents is the end of an event stream without a semantic end, unless the
// bytes in hand complete it.
func (s *Stream) endOfEvents(e interrupt.Ended) {
	h := &s.hop
	n := s.attempt
	switch rest, ok := h.scan.Rest(); {
	case !ok:
	case rest.Data != nil && jsonwalk.Valid(rest.Data):
		// The last event lacks only its blank line: deliver it well framed
		// (FIELD-REPORTS A5). Half an event is a cut and never leaves.
		if !h.framed {
			rest.Raw = sse.Append(nil, string(rest.Name), rest.Data)
			if h.crlf {
				rest.Raw = bytes.ReplaceAll(rest.Raw, []byte("\n"), []byte("\r\n"))
			}
		}
		s.unit(rest)
	case rest.Stray() != nil:
		s.strayFault(rest)
	}
	if s.attempt != n {
		return
	}
	switch s.phase {
	case reading:
		if s.said.Finished() && (e.How == interrupt.EOF || !s.overHalfCall()) {
			s.endAsGiven()
			return
		}
		c := interrupt.FromEnd(e)
		if !h.any && e.How == interrupt.EOF {
			c.Kind = interrupt.EmptyAnswer
		}
		s.interrupted(c)
	case closing:
		s.terminate()
	case opening, refused, whole, raw, queued, waiting, finished:
	}
}
