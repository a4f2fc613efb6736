package faultinject

// Half ends the response inside an event (FIELD-REPORTS A6).
type Half struct {
	At   At
	End  End // how it ends then
	Keep int // bytes of the event that are sent; 0: half of them
}

// Next implements Fault.
func (f Half) Next(p Position, chunk []byte) Action {
	at := f.At
	if !at.HasByte {
		at.Side = Inside
	}
	if _, hit := at.here(p, chunk); hit && f.Keep > 0 && chunk != nil {
		return do(Step{Write: chunk[:min(f.Keep, len(chunk)-1)]}, Step{End: f.End})
	}
	return at.cut(p, chunk, Step{End: f.End})
}

// parseHalf reads "half [with fin|polite|rst] [keeping BYTES] [where]". The first
// twelve bytes of a frame are its prelude.
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
	if w.take("keeping") {
		if f.Keep = w.number(0); f.Keep < 1 {
			return nil, w.wrong("half keeping", "a number of bytes from 1")
		}
	}
	var err error
	f.At, err = w.atBody()
	return f, err
}
