package faultinject

import "time"

// Trickle sends the whole stream in small pieces with pauses between them
// (FIELD-REPORTS C6, C10).
type Trickle struct {
	Piece int // bytes
	Pause time.Duration
}

// Next implements Fault.
func (f Trickle) Next(p Position, chunk []byte) Action {
	if p.Phase != PhaseOpen {
		return Action{}
	}
	return Action{Setup: Setup{Piece: f.Piece, Pause: f.Pause}}
}

// parseTrickle reads "trickle [BYTES] [every DURATION]".
func parseTrickle(w *words) (Fault, error) {
	return Trickle{Piece: w.number(1), Pause: w.every(0)}, nil
}
