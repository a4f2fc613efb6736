package faultinject

// RST resets the TCP connection (FIELD-REPORTS A11).
type RST struct{ At At }

// Next implements Fault.
func (f RST) Next(p Position, chunk []byte) Action { return f.At.cut(p, chunk, Step{End: EndReset}) }

func parseRST(w *words) (Fault, error) {
	at, err := w.at()
	return RST{at}, err
}
