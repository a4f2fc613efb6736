package faultinject

// Garbage puts an event into the stream that is no event of the dialect: data
// that is not JSON.
type Garbage struct{ At At }

// Next implements Fault.
func (f Garbage) Next(p Position, chunk []byte) Action {
	name := p.Dialect.speaker().traits().deltaEvent
	return f.At.insert(p, chunk, Step{Write: p.Framing.event(name, `{"type":"content_block_delta","ind`+"\x01\xff", p.Event == 0)})
}

func parseGarbage(w *words) (Fault, error) {
	at, err := w.atBody()
	return Garbage{at}, err
}
