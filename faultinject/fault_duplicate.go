package faultinject

// Duplicate sends one event twice.
type Duplicate struct{ At At }

// Next implements Fault.
func (f Duplicate) Next(p Position, chunk []byte) Action {
	if _, hit := f.At.here(p, chunk); !hit || chunk == nil {
		return Action{}
	}
	return do(Step{Write: chunk}, Step{Write: chunk})
}

func parseDuplicate(w *words) (Fault, error) {
	at, err := w.atBody()
	return Duplicate{at}, err
}
