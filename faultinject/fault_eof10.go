package faultinject

// EOF10 sends a body that is delimited by the close of the connection alone,
// as HTTP/1.0 did, and closes it early: no client library sees an error
// (FIELD-REPORTS A1, measured).
type EOF10 struct{ At At }

// Next implements Fault.
func (f EOF10) Next(p Position, chunk []byte) Action {
	if p.Phase == PhaseOpen {
		return Action{Setup: Setup{CloseDelimited: true}}
	}
	return f.At.cut(p, chunk, Step{End: EndPolite})
}

// Needs implements Needy: HTTP/2 has no such body.
func (f EOF10) Needs() Transport { return HTTP1 }

func parseEOF10(w *words) (Fault, error) {
	at, err := w.atBody()
	return EOF10{at}, err
}
