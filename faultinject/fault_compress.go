package faultinject

// Compress compresses the stream whether or not the client allowed it, flushed
// at every event (FIELD-REPORTS F1).
type Compress struct {
	Encoding string // gzip or br
}

// Next implements Fault.
func (f Compress) Next(p Position, _ []byte) Action {
	if p.Phase != PhaseOpen {
		return Action{}
	}
	return Action{Setup: Setup{Encoding: f.Encoding}}
}

func parseGzip(*words) (Fault, error) { return Compress{"gzip"}, nil }

func parseBrotli(*words) (Fault, error) { return Compress{"br"}, nil }
