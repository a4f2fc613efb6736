package faultinject

import "fmt"

// Mislabel sends the stream under another Content-Type (FIELD-REPORTS F23).
type Mislabel struct {
	Type string // "none" sends none
}

// Next implements Fault.
func (f Mislabel) Next(p Position, _ []byte) Action {
	if p.Phase != PhaseOpen {
		return Action{}
	}
	return Action{Setup: Setup{ContentType: f.Type}}
}

func parseMislabel(w *words) (Fault, error) {
	kind := w.next()
	if kind == "" {
		return nil, fmt.Errorf("content-type needs a media type, such as content-type text/plain, or none")
	}
	return Mislabel{kind}, nil
}
