package faultinject

import "bytes"

// A Framing says how the events of a response stand in its body. What a fault
// puts between them has to stand there in the same way: readers of Gemini's
// streams take a mixture of line ends for one event (WIRE 3.4).
type Framing uint8

// The framings.
const (
	FrameLF    Framing = iota // events, lines end in LF
	FrameCRLF                 // events, lines end in CRLF
	FrameArray                // elements of one JSON array, as Gemini without alt=sse
)

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
	if f == FrameArray {
		return "application/json; charset=UTF-8"
	}
	return "text/event-stream; charset=utf-8"
}

// event frames a payload. first says that nothing of the body was sent yet. An
// element of an array has no name.
func (f Framing) event(name, payload string, first bool) []byte {
	if f != FrameArray {
		return frame(Variant{CRLF: f == FrameCRLF}, name, payload)
	}
	if first {
		return []byte("[" + payload)
	}
	return []byte(arraySeparator + payload)
}

// comment is a sign of life that says nothing, with its text where the framing
// has a place for one.
func (f Framing) comment(text string) []byte {
	switch f {
	case FrameArray:
		return []byte("\r\n")
	case FrameCRLF:
		return []byte(": " + text + "\r\n\r\n")
	}
	return []byte(": " + text + "\n\n")
}

const (
	arraySeparator = "\n,\r\n"
	arrayEnd       = "\n]"
)
