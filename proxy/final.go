package proxy

// lastStatus is the status of an answer that is not to be asked for again. Codex
// knows no x-should-retry: what is answered with a 5xx it sends thirty times, six
// times with any other status, and once with a 400, whose body it shows its user
// (codex 0.171.0, measured). A 429, which it takes for final too, it does not show.
// The real status goes along in a field of its own.
func (r *request) lastStatus(status int) int {
	if r.asks.Keepalive && status >= 500 {
		return 400
	}
	return status
}
