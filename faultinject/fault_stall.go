package faultinject

import "time"

// Stall is silent for a while, or until the client leaves (FIELD-REPORTS B2).
// Before the headers it is a server that accepts and never answers.
type Stall struct {
	At  At
	For time.Duration // 0 is until the client leaves
}

// Next implements Fault.
func (f Stall) Next(p Position, chunk []byte) Action {
	if f.For == 0 {
		return f.At.cut(p, chunk, Step{End: EndHang})
	}
	return f.At.insert(p, chunk, Step{Wait: f.For})
}

// parseStall reads "stall [DURATION] [where]".
func parseStall(w *words) (Fault, error) {
	f := Stall{For: w.duration(0)}
	var err error
	f.At, err = w.at()
	return f, err
}
