package faultinject

// Length announces the length of the whole stream, so that a cut is a short
// body (FIELD-REPORTS F10). Use it together with a cut.
type Length struct{}

// Next implements Fault.
func (f Length) Next(p Position, _ []byte) Action {
	if p.Phase != PhaseOpen {
		return Action{}
	}
	return Action{Setup: Setup{Length: true}}
}

func parseLength(*words) (Fault, error) { return Length{}, nil }
