package relay

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/planner"
	"github.com/unbroken-llm/unbroken/turn"
)

// maxRefusal bounds how much of an error body is read before deciding. Provider
// errors are a few hundred bytes; what is longer is relayed as it comes.
const maxRefusal = 64 << 10

// opened takes the response head of the current attempt.
func (s *Stream) opened(o Opened) {
	s.head, s.partial = o, false
	s.watch.Opened(s.now)
	switch {
	case o.Status < 200 || o.Status > 299:
		s.phase = refused
	case !s.req.Stream:
		s.phase = whole
	default:
		s.phase = reading
		if s.holdFrom.IsZero() {
			s.holdFrom = s.now
		}
		if s.plan.how == reattach {
			s.attached()
			break
		}
		s.ungrasp()
		s.hop.start(s.d, s.d.NewDecoder(s.req), s.plan.how, s.cfg.MaxEvent)
		s.hop.watch(s.d, s.req)
		s.arm()
	}
}

func (s *Stream) chunk(b []byte) {
	s.sum.BytesIn += int64(len(b))
	switch s.phase {
	case reading, closing:
		s.feed(b)
	case refused:
		s.watch.Bytes(s.now)
		s.body = append(s.body, b...)
		if len(s.body) > maxRefusal {
			s.judge(true)
		}
	case whole:
		s.watch.Bytes(s.now)
		s.body = append(s.body, b...)
		if len(s.body) > s.cfg.MaxWhole {
			s.unprotected("answer_too_large")
		}
	case raw:
		s.out = append(s.out, b...)
	case opening, queued, waiting, finished:
	}
}

// ended takes the end of the current attempt's bytes.
func (s *Stream) ended(e interrupt.Ended) {
	switch s.phase {
	case reading:
		s.endOfEvents(e)
	case closing:
		s.terminate()
	case refused:
		s.partial = e.How != interrupt.EOF
		s.judge(false)
	case whole:
		if e.How != interrupt.EOF {
			s.interrupted(interrupt.FromEnd(e))
			return
		}
		if c := s.told(); c.Kind == interrupt.Provider5xxMidStream {
			s.interrupted(c)
			return
		}
		s.openGate(Head{Status: s.head.Status, Upstream: s.head.Header})
		if len(s.out) == 0 {
			s.out, s.body = s.body, s.out // whole answers may be large
		} else {
			s.out = append(s.out, s.body...)
		}
		s.fx.Answer = true
		s.finalize(Clean, "completed")
	case raw:
		if e.How == interrupt.EOF {
			s.finalize(Clean, "relayed")
		} else {
			s.finalize(Abort, "relayed_cut")
		}
	case opening, queued:
		if s.phase == queued {
			s.outOfLine()
		}
		if e.How == interrupt.Barred || e.How == interrupt.Crowded {
			s.heldBack()
		}
		s.interrupted(interrupt.FromEnd(e))
	case waiting, finished:
	}
}

// told is the error that a 2xx document tells where a stream was asked for; its
// status says nothing (FIELD-REPORTS F23).
func (s *Stream) told() interrupt.Cause {
	if !s.req.Stream {
		return interrupt.Cause{}
	}
	return interrupt.FromStatus(s.head.Status, s.head.Header.Get, s.body, s.now)
}

// judge decides about an error status. more says that the body was longer than
// what was read of it.
func (s *Stream) judge(more bool) {
	c := interrupt.FromStatus(s.head.Status, s.head.Header.Get, s.body, s.now)
	if s.unveil(c) || s.downgrade(c) {
		return
	}
	if s.plan.manner == turn.Provider || s.visible || s.attempt > 1 || c.Transient() || c.ContextOverflow && s.option(planner.Larger).Exists {
		s.interrupted(c)
		return
	}
	// The provider's final word on the client's own request: relayed as it is.
	s.fail(c, "permanent", more)
}

// unprotected relays the current attempt's body as it comes, with what was
// collected of it.
func (s *Stream) unprotected(reason string) {
	s.note(Note{Kind: NoteUnprotected, Reason: reason})
	s.openGate(Head{Status: s.head.Status, Upstream: s.head.Header, Raw: true})
	s.out = append(s.out, s.body...)
	s.body = nil
	s.phase = raw
}

// sniffed is what the first bytes of a 2xx answer to a streaming request are.
type sniffed uint8

const (
	undecided sniffed = iota
	events
	document // a JSON document
	page     // HTML
)

// sniff tells an event stream from what providers, gateways and captive portals
// answer instead, by the bytes, since labels are unreliable (FIELD-REPORTS F23).
// framed: the dialect's streams are no event streams, and may be arrays.
func sniff(b []byte, framed bool) sniffed {
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	b = bytes.TrimLeft(b, " \t\r\n")
	switch {
	case len(b) == 0:
		return undecided
	case b[0] == '{' || b[0] == '[' && !framed:
		return document
	case b[0] == '<':
		return page
	}
	return events
}
