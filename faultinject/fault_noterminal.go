package faultinject

// NoTerminal leaves out the terminal event ([DONE], message_stop) of an
// otherwise whole answer and ends politely (FIELD-REPORTS A2).
type NoTerminal struct{}

// Next implements Fault.
func (f NoTerminal) Next(p Position, chunk []byte) Action {
	return At{Kind: KindEnd, Side: Before}.cut(p, chunk, Step{End: EndPolite})
}

func parseNoTerminal(*words) (Fault, error) { return NoTerminal{}, nil }
