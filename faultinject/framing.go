package faultinject

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/eventstream"
)

// A Framing says how the events of a response stand in its body. What a fault
// puts between them has to stand there in the same way: readers of Gemini's
// streams take a mixture of line ends for one event (WIRE 3.4).
type Framing uint8

// The framings.
const (
	FrameLF     Framing = iota // events, lines end in LF
	FrameCRLF                  // events, lines end in CRLF
	FrameArray                 // elements of one JSON array, as Gemini without alt=sse
	FrameBinary                // checked frames of AWS's event stream, as Bedrock
)

// String is what a refusal says of it.
func (f Framing) String() string {
	switch f {
	case FrameBinary:
		return "frames with checksums"
	case FrameArray:
		return "a JSON array"
	}
	return "text events"
}

// framing is how d's events stand in a body of these options.
func (d Dialect) framing(o Options) Framing {
	if f := d.speaker().traits().framing; f != nil {
		return f(o)
	}
	if o.Variant.CRLF {
		return FrameCRLF
	}
	return FrameLF
}

// framingOf tells the framing of an event that somebody else rendered.
func framingOf(raw []byte) Framing {
	switch {
	case bytes.HasSuffix(raw, []byte("\r\n\r\n")):
		return FrameCRLF
	case bytes.HasSuffix(raw, []byte("\n\n")), bytes.HasSuffix(raw, []byte("\r\r")):
		return FrameLF
	}
	return FrameArray
}

// contentType is what a stream is labelled as.
func (f Framing) contentType() string {
	switch f {
	case FrameArray:
		return "application/json; charset=UTF-8"
	case FrameBinary:
		return "application/vnd.amazon.eventstream"
	}
	return "text/event-stream; charset=utf-8"
}

// event frames a payload. first says that nothing of the body was sent yet. An
// element of an array has no name.
func (f Framing) event(name, payload string, first bool) []byte {
	switch {
	case f == FrameBinary:
		return eventstream.Append(nil, eventstream.Event, name, []byte(payload))
	case f != FrameArray:
		return frame(Variant{CRLF: f == FrameCRLF}, name, payload)
	case first:
		return []byte("[" + payload)
	}
	return []byte(arraySeparator + payload)
}

// eventLen returns the length of the first event of p, or zero if it is not
// complete. What cannot be read is one event, of everything there is.
func (f Framing) eventLen(p []byte) int {
	if f == FrameBinary {
		_, size, err := eventstream.Read(p, 0)
		switch {
		case err != nil:
			return len(p)
		case size > len(p):
			return 0
		}
		return size
	}
	best := 0
	for _, sep := range []string{"\n\n", "\r\n\r\n", "\r\r"} {
		if i := bytes.Index(p, []byte(sep)); i >= 0 && (best == 0 || i+len(sep) < best) {
			best = i + len(sep)
		}
	}
	return best
}

// classify tells the kind of an event that somebody else rendered.
func (f Framing) classify(raw []byte) Kind {
	if f == FrameBinary {
		return classifyFrame(raw)
	}
	return classify(raw)
}

// comment is a sign of life that says nothing, with its text where the framing
// has a place for one.
func (f Framing) comment(text string) []byte {
	switch f {
	case FrameArray:
		return []byte("\r\n")
	case FrameBinary: // an event of a later year, which every reader passes by
		return f.event("comment", "{}", false)
	case FrameCRLF:
		return []byte(": " + text + "\r\n\r\n")
	}
	return []byte(": " + text + "\n\n")
}

const (
	arraySeparator = "\n,\r\n"
	arrayEnd       = "\n]"
)
