package relay

import (
	"bytes"
	"unicode"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/splice"
	"github.com/unbroken-llm/unbroken/sse"
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

// join takes one event of an attempt whose client already has a message.
func (s *Stream) join(e sse.Event, ds []turn.Delta) {
	h := &s.hop
	for i := range ds {
		if ds[i].Kind == turn.Open {
			h.kinds = append(h.kinds, ds[i].Of)
		}
	}
	if h.seam == nil {
		s.guarded(e, ds)
		return
	}
	v := s.probe(ds)
	switch v.State {
	case splice.Holding:
		s.speaks(ds)
		h.queue = append(h.queue, own(e, ds))
		return
	case splice.Failed:
		s.note(Note{Kind: NoteSeam, Reason: v.Reason, Held: len(h.plain), Manner: s.plan.manner})
		s.interrupted(interrupt.Cause{Kind: interrupt.SeamFailed, Type: v.Reason, Message: "the continuation did not go on from what was said"})
		return
	case splice.Joined:
	}
	s.note(Note{Kind: NoteSeam, Reason: v.Kind.String(), Joined: true, Held: len(h.plain), Skipped: v.Skip, Manner: s.plan.manner})
	again := turn.Measure(h.plain[:v.Skip])
	h.seat.Answer, h.seat.Block = h.seat.Answer.Minus(again), h.seat.Block.Minus(again)
	h.seam, h.skip, h.plain = nil, v.Skip, nil
	// Nothing is missing, and no open text could take it: no block is opened for
	// the word that says so.
	h.mute = v.Kind.Base() == splice.Sentinel && h.joint < 0
	queue := h.queue
	h.queue = nil
	if h.stop != "" {
		s.finishLocally(turn.Stopped, h.stop, "stop_sequence_at_seam")
		return
	}
	n := s.attempt
	for i := range queue {
		s.guarded(queue[i].e, queue[i].ds)
		if s.attempt != n || s.phase == finished {
			return
		}
	}
	s.guarded(e, ds)
}

// guarded lets an event of an asked continuation wait while its text may turn out
// to end in the sentinel, which never reaches the client.
func (s *Stream) guarded(e sse.Event, ds []turn.Delta) {
	h := &s.hop
	if h.guard == nil {
		s.splice(e, ds)
		return
	}
	if !h.cleared(ds, &s.scratch) {
		s.speaks(ds)
		h.queue = append(h.queue, own(e, ds))
		return
	}
	queue := h.queue
	h.queue = nil
	n := s.attempt
	for i := range queue {
		s.splice(queue[i].e, queue[i].ds)
		if s.attempt != n || s.phase == finished {
			return
		}
	}
	s.splice(e, ds)
}

// speaks sets the byte clock for text that waits: a continuation that stalls before
// its join is decided is as silent as one that stalls after it.
func (s *Stream) speaks(ds []turn.Delta) {
	for i := range ds {
		if ds[i].Kind == turn.Text && s.hop.prose(ds[i].Block) {
			s.watch.Progress(s.now)
			s.watch.Phase(interrupt.Speaking)
		}
	}
}

// cleared shows the guard an event's text, and reports whether all text so far
// may be decided about.
func (h *hop) cleared(ds []turn.Delta, buf *[]byte) bool {
	clear := true
	for i := range ds {
		d := &ds[i]
		switch {
		case d.Kind == turn.Text && h.prose(d.Block):
			*buf = jsonwalk.Unescape((*buf)[:0], d.Text)
			h.heard += len(*buf)
			keep, said := h.guard.Push(*buf)
			if clear = said || keep == h.heard; said && h.limit < 0 {
				h.limit = keep
			}
		case d.Kind == turn.Open, d.Kind == turn.Finish, d.Kind == turn.Terminal:
			h.guard.End()
			clear = true
		}
	}
	return clear
}

// prose reports whether a block of the attempt is answer text.
func (h *hop) prose(block int) bool {
	return block >= 0 && block < len(h.kinds) && h.kinds[block] == turn.Prose
}

// probe shows the seam what an event says, before any of it is admitted.
func (s *Stream) probe(ds []turn.Delta) splice.Verdict {
	h := &s.hop
	v := splice.Verdict{State: splice.Holding}
	for i := range ds {
		d := &ds[i]
		switch d.Kind {
		case turn.Text:
			if !h.prose(d.Block) || len(d.Text) == 0 {
				continue
			}
			s.scratch = jsonwalk.Unescape(s.scratch[:0], d.Text)
			v = h.say(s.scratch)
		case turn.Open:
			switch {
			case d.Of == turn.Prose, d.Of == turn.Reasoning, d.Of == turn.Redacted:
			default:
				v = h.turned()
			}
		case turn.Finish, turn.Terminal:
			if v = h.over(); v.State == splice.Failed && v.Reason == splice.Blank && v.Overlap > 0 {
				// It repeated the anchor and ended by itself: as good as
				// the sentinel, and as good as an empty prefill.
				v = h.repeated()
			}
			if v.State == splice.Failed && d.Kind == turn.Finish && d.Why == turn.Filtered {
				// The provider's word on the turn, with or without new text:
				// asking again would only be told the same.
				v = splice.Verdict{State: splice.Joined, Kind: splice.Empty, Skip: len(h.plain)}
			}
		case turn.Skip, turn.Head, turn.Sign, turn.Extra, turn.Close, turn.Count, turn.Pulse, turn.Fault, turn.Opaque:
		}
		if v.State != splice.Holding {
			return v
		}
	}
	return v
}

// say shows the seam decoded text of the continuation. A join is decided when the
// seam is, and no stop sequence may still straddle it.
func (h *hop) say(p []byte) splice.Verdict {
	h.plain = append(h.plain, p...)
	if h.verdict.State != splice.Joined {
		h.verdict = h.seam.Push(p)
		if h.verdict.State != splice.Joined {
			return h.verdict
		}
		p = h.plain[h.verdict.Skip:]
	}
	if h.stops == nil {
		return h.verdict
	}
	_, hit, ok := h.stops.Push(p)
	return h.settled(hit, ok)
}

// over tells the seam that the continuation's text has ended.
func (h *hop) over() splice.Verdict {
	if h.verdict.State != splice.Joined {
		if h.verdict = h.seam.End(); h.verdict.State != splice.Joined {
			return h.verdict
		}
		h.behind()
	}
	return h.stopped()
}

// turned tells the seam that the turn goes on with something other than text. No
// new text is no failure then, and neither is a bare repetition of the anchor.
func (h *hop) turned() splice.Verdict {
	if len(h.plain) == 0 {
		return splice.Verdict{State: splice.Joined, Kind: splice.Empty}
	}
	v := h.over()
	if v.State == splice.Failed && v.Reason == splice.Blank {
		return h.repeated()
	}
	return v
}

// repeated is the verdict on a continuation that has no new words, where none are
// needed. White space behind a repeated anchor is new all the same, unless it would
// be a block of its own, which nobody takes back in a later request.
func (h *hop) repeated() splice.Verdict {
	h.verdict.State, h.verdict.Reason = splice.Joined, ""
	if h.joint < 0 {
		h.verdict.Skip = len(h.plain)
	}
	h.behind()
	return h.stopped()
}

// behind shows the stops what was said behind a seam that was decided at its end.
func (h *hop) behind() {
	if h.stops != nil {
		h.stops.Push(h.plain[min(h.verdict.Skip, len(h.plain)):])
	}
}

// stopped is the verdict of a seam behind which no more text comes.
func (h *hop) stopped() splice.Verdict {
	if h.stops == nil {
		return h.verdict
	}
	_, hit, _ := h.stops.End()
	return h.settled(hit, true)
}

func (h *hop) settled(hit string, ok bool) splice.Verdict {
	if !ok {
		return splice.Verdict{State: splice.Holding}
	}
	h.stop = hit
	return h.verdict
}

// splice edits an event of a later attempt so that it becomes part of the
// client's message, and admits it.
func (s *Stream) splice(e sse.Event, ds []turn.Delta) {
	h := &s.hop
	next := len(s.said.Blocks)
	index := s.said.NextIndex(s.traits.IndexCallsOnly)
	cut := noCut
	for i := range ds {
		d := &ds[i]
		switch d.Kind {
		case turn.Head:
			if s.said.Head != nil {
				d.Kind = turn.Skip
			}
		case turn.Open:
			if h.same != nil {
				settled, wrong := h.same.opens(s, d)
				if wrong {
					cut = cutAstray
				}
				if settled {
					break
				}
			}
			s.placeBlock(d, &next, &index)
		case turn.Text:
			prose := h.prose(d.Block)
			if h.same != nil && h.same.text(s, d) {
				cut = cutAstray
				break
			}
			if d.Kind == turn.Skip {
				break
			}
			if s.locate(d) && prose {
				cut = s.trim(d)
			}
		case turn.Sign, turn.Extra, turn.Close:
			if h.same != nil && h.same.past(d.Block) {
				d.Kind = turn.Skip
				break
			}
			switch prose := h.prose(d.Block); {
			case !s.locate(d) || !prose:
			case d.Kind == turn.Extra && !d.Sum:
				d.Joint = h.jointOf(d.Block)
			case d.Kind != turn.Sign && h.skip > 0:
				d.Kind = turn.Skip // the end of a text that is said again is none of the one that goes on
			}
		case turn.Count:
			d.Usage = s.tokens.merge(d.Usage)
		case turn.Finish:
			if len(h.again) > 0 || h.same != nil && !h.same.whole() {
				s.strayed()
				return
			}
			if !s.fitsSchema() {
				s.mismatch()
				return
			}
		case turn.Opaque:
			switch {
			case d.Block >= 0:
				s.locate(d)
			case h.same != nil && !h.fresh:
				d.Kind = turn.Skip
			}
		case turn.Skip, turn.Terminal, turn.Pulse, turn.Fault:
		}
		if cut != noCut {
			for j := i + 1; j < len(ds); j++ {
				ds[j].Kind = turn.Skip
			}
			break
		}
	}
	if cut == cutAstray {
		s.strayed()
		return
	}
	if cut == cutInvalid {
		s.interrupted(interrupt.Cause{Kind: interrupt.SeamFailed, Type: "invalid_document", Message: "the continuation does not complete the JSON document"})
		return
	}
	s.closeBefore(ds)
	s.admit(e, ds, true)
	if cut == cutDocument && s.phase == reading {
		if s.fitsSchema() {
			s.finishLocally(turn.Stopped, "", "document_end")
		} else {
			s.mismatch()
		}
	}
}

// placeBlock decides where a block of this attempt stands in the client's
// message.
func (s *Stream) placeBlock(d *turn.Delta, next, index *int) {
	h := &s.hop
	to := -1
	switch {
	case d.Part && (len(h.place) == 0 || h.place[len(h.place)-1] < 0):
	case h.mode == joinSame:
		to = *next
	case d.Of == turn.Reasoning || d.Of == turn.Redacted:
		switch n := len(s.said.Blocks) - 1; {
		case h.mode == joinText && s.plan.manner != turn.Provider:
			// Reasoning of a continuation belongs to another prompt; the
			// client must not get it (WIRE 2.2).
		case s.reasoned():
			// The client has whole, signed reasoning of this turn. A second
			// one beside it makes a history that no provider takes back
			// (FIELD-REPORTS D1).
		case d.Of == turn.Reasoning && n >= 0 && s.goesOn(&s.said.Blocks[n]):
			h.place = append(h.place, n)
			d.Kind = turn.Skip
			return
		default:
			to = *next
		}
	case d.Of == turn.Prose && h.mute:
	case d.Of == turn.Prose && h.joint >= 0 && (!h.jointUsed || h.skip > 0) && !s.said.Blocks[h.joint].Closed:
		h.jointUsed = true
		h.place = append(h.place, h.joint)
		d.Kind = turn.Skip
		if len(d.Text) > 0 {
			// Text inside the opening goes on as a delta.
			d.Kind, d.Block = turn.Text, h.joint
		}
		return
	default:
		to = *next
	}
	h.place = append(h.place, to)
	if to < 0 {
		d.Kind = turn.Skip
		return
	}
	d.Block = to
	*next++
	if d.Part {
		// It stands in the item of the block before it, which this very event
		// may have opened.
		d.Index = *index - 1
		if n := h.place[len(h.place)-2]; n < len(s.said.Blocks) {
			d.Index = s.said.Blocks[n].Index
		}
		return
	}
	if !s.traits.IndexCallsOnly || d.Of == turn.Call || d.Of == turn.CustomCall {
		d.Index = *index
		*index++
	}
}

// reasoned reports whether the client has a whole signed reasoning block.
func (s *Stream) reasoned() bool {
	if !s.traits.SignedReasoning {
		return false
	}
	for i := range s.said.Blocks {
		if b := &s.said.Blocks[i]; b.Live() && b.Closed && (b.Kind == turn.Reasoning && len(b.Signature) > 0 || b.Kind == turn.Redacted) {
			return true
		}
	}
	return false
}

// goesOn reports whether a restart's reasoning continues reasoning block b: it is
// open and unsigned dialects let it simply go on; or nothing of it was shown.
func (s *Stream) goesOn(b *turn.Block) bool {
	if b.Kind != turn.Reasoning || b.Closed || b.Withdrawn {
		return false
	}
	return !s.traits.SignedReasoning || len(b.Text) == 0 && !s.traits.BoundReasoning
}

// locate maps the delta's block to said; a delta of a suppressed block is taken
// out.
func (s *Stream) locate(d *turn.Delta) bool {
	h := &s.hop
	if d.Block < 0 || d.Block >= len(h.place) || h.place[d.Block] < 0 {
		d.Kind = turn.Skip
		return false
	}
	d.Block = h.place[d.Block]
	return true
}

// jointOf tells an extra of a block of said where the attempt's text joined it.
func (h *hop) jointOf(block int) *turn.Joint {
	if h.seat == (turn.Joint{}) {
		return nil
	}
	j := h.seat
	if j.Repeats = h.skip > 0; block != h.joint {
		j.Block, j.Had = turn.Extent{}, 0
	}
	return &j
}

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

// closeBefore closes what is open on the client's wire before a new block opens
// or the turn finishes, in dialects that close blocks.
func (s *Stream) closeBefore(ds []turn.Delta) {
	for i := range ds {
		if k := ds[i].Kind; k == turn.Open && !ds[i].Part || k == turn.Finish {
			s.closeOpen()
			return
		}
	}
}

// closeOpen closes what is open and finished on the client's wire.
func (s *Stream) closeOpen() {
	if s.traits.IndexCallsOnly {
		return
	}
	for i := range s.said.Blocks {
		b := &s.said.Blocks[i]
		if b.Closed || b.Withdrawn || b.IsCall() && !b.Complete() {
			continue
		}
		s.scratch = s.d.CloseBlock(s.scratch[:0], &s.said, i)
		s.emit(s.scratch)
		b.Closed = true
		if b.Kind == turn.Reasoning && s.traits.SignedReasoning {
			// Closed under the mark: it is worth nothing to anybody.
			b.Withdrawn = true
			b.Signature = append(b.Signature[:0], turn.DropMark...)
		}
	}
}
