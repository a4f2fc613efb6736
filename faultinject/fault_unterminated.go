package faultinject

import "bytes"

// Unterminated leaves out the blank line after the last event, so that a
// complete answer ends in an unfinished one (FIELD-REPORTS A5).
type Unterminated struct{}

// Next implements Fault.
func (f Unterminated) Next(p Position, chunk []byte) Action {
	if p.Phase != PhaseEvent || p.Kind != KindEnd {
		return Action{}
	}
	return do(Step{Write: bytes.TrimRight(chunk, "\r\n")})
}

func parseUnterminated(*words) (Fault, error) { return Unterminated{}, nil }
