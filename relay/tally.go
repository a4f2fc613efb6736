package relay

import "github.com/unbroken-llm/unbroken/turn"

// tally counts tokens over the hops of one turn. The client is owed one usage
// record: the prompt of the first hop, and what was delivered before the last
// interruption plus what the last hop produced (DESIGN §5).
type tally struct {
	hop       turn.Usage // the current attempt's latest record; its Raw is in raw
	raw       []byte     // owned: records outlive the read buffer that they came in
	prompt    int64      // the first attempt's prompt
	known     bool       // prompt is a provider's number
	delivered int64      // output of earlier attempts that the client has
	estimated bool       // some part of it is a guess
	repaid    int64      // prompt tokens of further attempts
}

func (t *tally) count(u turn.Usage) {
	if !u.Known {
		return
	}
	t.hop = u
	if u.Raw != nil {
		t.raw = append(t.raw[:0], u.Raw...)
		t.hop.Raw = t.raw
	}
}

// turnOver ends the accounting of one attempt. said is an estimate of all output
// that the client has by now; produced tells whether this attempt's share of it
// stays with the client.
func (t *tally) turnOver(first bool, said int64, kept bool) {
	if t.hop.Known && t.hop.Input > 0 {
		if first {
			t.prompt, t.known = t.hop.Input, true
		} else {
			t.repaid += t.hop.Input
		}
	}
	switch {
	case !kept:
		t.delivered = 0
	case said > t.delivered:
		t.delivered, t.estimated = said, true
	}
	t.hop = turn.Usage{}
}

// paidAgain is what the prompts of all attempts but the first cost.
func (t *tally) paidAgain(first bool) int64 {
	if first || !t.hop.Known {
		return t.repaid
	}
	return t.repaid + t.hop.Input
}

// merge turns a later attempt's record into the whole turn's.
func (t *tally) merge(u turn.Usage) turn.Usage {
	switch {
	case t.known:
		u.Input = t.prompt
	case t.delivered > 0 && u.Input > t.delivered:
		// The first prompt's count was lost with its stream; the later one
		// holds it, and about what was delivered.
		u.Input -= t.delivered
		t.estimated = true
	}
	u.Output += t.delivered
	return u
}

// final is the record for an end that Unbroken renders itself. said and prompt
// are estimates to fall back on.
func (t *tally) final(first bool, said, prompt int64) turn.Usage {
	u := t.hop
	if !u.Known || u.Output < said-t.delivered {
		u.Known, t.estimated = true, true
		u.Output = max(u.Output, said-t.delivered, 0)
	}
	if !first {
		u = t.merge(u)
	}
	if u.Input == 0 {
		u.Input, t.estimated = prompt, true
	}
	return u
}
