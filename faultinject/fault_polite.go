package faultinject

// Polite ends the body with a proper last chunk although the answer is not
// over: only the missing terminal event tells (FIELD-REPORTS A1).
type Polite struct{ At At }

// Next implements Fault.
func (f Polite) Next(p Position, chunk []byte) Action {
	return f.At.cut(p, chunk, Step{End: EndPolite})
}

func parsePolite(w *words) (Fault, error) {
	at, err := w.atBody()
	return Polite{at}, err
}
