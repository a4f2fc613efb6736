package faultinject

import "bytes"

// Unterminated leaves out the blank line after the last event, or the last byte
// of a frame, so that a complete answer ends in an unfinished one (FIELD-REPORTS A5).
type Unterminated struct{}

// Next implements Fault.
func (f Unterminated) Next(p Position, chunk []byte) Action {
	if p.Phase != PhaseEvent || p.Kind != KindEnd {
		return Action{}
	}
	if p.Framing == FrameBinary { // its end is its checksum
		return do(Step{Write: chunk[:len(chunk)-1]})
	}
	return do(Step{Write: bytes.TrimRight(chunk, "\r\n")})
}

func parseUnterminated(*words) (Fault, error) { return Unterminated{}, nil }
