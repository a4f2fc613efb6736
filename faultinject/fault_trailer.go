package faultinject

// Trailer goes on after the terminal event, with content and a second
// terminal, and then hangs (FIELD-REPORTS A8).
type Trailer struct{}

// Next implements Fault.
func (f Trailer) Next(p Position, _ []byte) Action {
	if p.Phase != PhaseDone {
		return Action{}
	}
	late := Answer{Blocks: []Block{text("ZZ")}, Finish: FinishStop}
	var steps []Step
	for _, e := range Render(p.Dialect, late, Options{ID: p.ID, Model: p.Model, Array: p.Framing == FrameArray}) {
		steps = append(steps, Step{Write: e.Raw})
	}
	return do(append(steps, Step{End: EndHang})...)
}

func parseTrailer(*words) (Fault, error) { return Trailer{}, nil }
