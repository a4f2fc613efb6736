package faultinject

import "testing"

// The bench subtracts what a provider takes for itself from the gap that a client feels, so
// the log must tell when an answer began and where it was cut.
func TestTheLogTellsWhenAnAnswerSpokeAndStopped(t *testing.T) {
	s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: rst after event 3\nattempt 2: status 503")})
	for range 2 {
		post(t, s, chatPath, chatBody("gpt-4.1", msg("user", "Hi")))
	}
	list, err := s.WaitLog(patience(t), func(l []Exchange) bool { return len(l) == 2 && l[0].Ending != "" && l[1].Ending != "" })
	if err != nil {
		t.Fatal(err)
	}
	x := list[0]
	if x.Spoke.Before(x.Received) || !x.Last.After(x.Spoke) || x.Ended.Before(x.Last) {
		t.Errorf("received %v, spoke %v, last %v, ended %v", x.Received, x.Spoke, x.Last, x.Ended)
	}
	if x := list[1]; !x.Spoke.IsZero() || !x.Last.IsZero() {
		t.Errorf("a status spoke at %v, and last at %v", x.Spoke, x.Last)
	}
}
