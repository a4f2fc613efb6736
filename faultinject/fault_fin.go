package faultinject

// FIN closes the connection without a last chunk: the client sees an
// unexpected end of a chunked body (FIELD-REPORTS A1).
type FIN struct{ At At }

// Next implements Fault.
func (f FIN) Next(p Position, chunk []byte) Action { return f.At.cut(p, chunk, Step{End: EndFIN}) }

func parseFIN(w *words) (Fault, error) {
	at, err := w.at()
	return FIN{at}, err
}
