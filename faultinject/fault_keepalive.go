package faultinject

import "time"

// Keepalive keeps the connection busy and says nothing, until the client
// leaves (FIELD-REPORTS B1).
type Keepalive struct {
	At       At
	Every    time.Duration
	Comments bool // comments; else the dialect's own ping
}

// Next implements Fault.
func (f Keepalive) Next(p Position, chunk []byte) Action {
	step := Step{Write: p.Framing.comment("keepalive"), Every: f.Every}
	if ping := p.Dialect.speaker().traits().ping; ping != nil && !f.Comments {
		sent := 0
		if f.At.Side == Before {
			sent = 1 // the row begins in the place of the chunk
		}
		step = Step{Beat: func(n int) []byte { return ping(chunk, n-sent) }, Every: f.Every}
	}
	return f.At.cut(p, chunk, step)
}

// parsePings reads "pings [every DURATION] [where]".
func parsePings(w *words) (Fault, error) { return parseKeepalive(w, false) }

// parseComments reads "comments [every DURATION] [where]".
func parseComments(w *words) (Fault, error) { return parseKeepalive(w, true) }

func parseKeepalive(w *words, comments bool) (Fault, error) {
	f := Keepalive{Every: w.every(100 * time.Millisecond), Comments: comments}
	var err error
	f.At, err = w.atBody()
	return f, err
}
