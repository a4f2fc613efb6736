package faultinject

import "time"

// Warm says everything up to the finish, leaves out the terminator, and keeps
// the socket warm with comments for ever (FIELD-REPORTS A3).
type Warm struct{ Every time.Duration }

// Next implements Fault.
func (f Warm) Next(p Position, chunk []byte) Action {
	return At{Kind: KindFinish}.cut(p, chunk, Step{Write: p.Framing.comment("hb"), Every: f.Every})
}

// parseWarm reads "warm [every DURATION]".
func parseWarm(w *words) (Fault, error) { return Warm{w.every(200 * time.Millisecond)}, nil }
