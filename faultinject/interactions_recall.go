package faultinject

// recall is a request for an interaction that was kept.
type recall struct {
	kept  *kept
	after int // events that the request has already seen
}

// kept is an interaction the provider holds for later.
type kept struct {
	prompt Prompt
	answer Answer
	events []Event
	whole  []byte
}
