package faultinject

// Half ends the response inside an event (FIELD-REPORTS A6).
type Half struct {
	At  At
	End End // how it ends then
}

// Next implements Fault.
func (f Half) Next(p Position, chunk []byte) Action {
	at := f.At
	if !at.HasByte {
		at.Side = Inside
	}
	return at.cut(p, chunk, Step{End: f.End})
}

// parseHalf reads "half [with fin|polite|rst] [where]".
func parseHalf(w *words) (Fault, error) {
	f := Half{End: EndFIN}
	if w.take("with") {
		switch {
		case w.take("rst"):
			f.End = EndReset
		case w.take("polite"):
			f.End = EndPolite
		case !w.take("fin"):
			return nil, w.wrong("half with", "fin, polite or rst")
		}
	}
	var err error
	f.At, err = w.atBody()
	return f, err
}
