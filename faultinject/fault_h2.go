package faultinject

import (
	"fmt"

	"golang.org/x/net/http2"
)

// ResetStream ends the stream with RST_STREAM (FIELD-REPORTS F6).
type ResetStream struct {
	At   At
	Code http2.ErrCode
}

// Next implements Fault.
func (f ResetStream) Next(p Position, chunk []byte) Action {
	return f.At.cut(p, chunk, Step{End: EndStream, Code: uint32(f.Code)})
}

// Needs implements Needy.
func (f ResetStream) Needs() Transport { return HTTP2 }

// GoAway sends GOAWAY. The connection takes no new streams then. If it covers
// the stream, that goes on; if not, the client must take it for not processed
// (FIELD-REPORTS F5, F6).
type GoAway struct {
	At     At
	Covers bool
	Code   http2.ErrCode
}

// Next implements Fault.
func (f GoAway) Next(p Position, chunk []byte) Action {
	step := Step{End: EndGoAway, Code: uint32(f.Code), Cover: f.Covers}
	if f.Covers {
		return f.At.insert(p, chunk, step)
	}
	return f.At.cut(p, chunk, step)
}

// Needs implements Needy.
func (f GoAway) Needs() Transport { return HTTP2 }

// parseResetStream reads "reset-stream [CODE] [where]".
func parseResetStream(w *words) (Fault, error) {
	f := ResetStream{Code: http2.ErrCodeInternal}
	f.Code = w.code(f.Code)
	var err error
	f.At, err = w.at()
	return f, err
}

// parseRefused reads "refused": REFUSED_STREAM before anything was processed.
func parseRefused(*words) (Fault, error) {
	return ResetStream{At: At{Fixed: true, Phase: PhaseOpen}, Code: http2.ErrCodeRefusedStream}, nil
}

// parseGoAway reads "goaway [covering] [CODE] [where]".
func parseGoAway(w *words) (Fault, error) {
	f := GoAway{Covers: w.take("covering")}
	f.Code = w.code(http2.ErrCodeNo)
	var err error
	f.At, err = w.at()
	return f, err
}

// code takes an HTTP/2 error code by its RFC 9113 name.
func (w *words) code(otherwise http2.ErrCode) http2.ErrCode {
	for c := http2.ErrCodeNo; c <= http2.ErrCodeHTTP11Required; c++ {
		if w.take(fmt.Sprint(c)) {
			return c
		}
	}
	return otherwise
}
