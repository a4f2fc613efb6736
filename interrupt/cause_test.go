package interrupt

import "testing"

func TestEveryKindHasANameABlameAndAVerdict(t *testing.T) {
	seen := map[string]bool{}
	for k := None; k <= Canceled; k++ {
		name := k.String()
		if name == "unknown" || seen[name] {
			t.Errorf("kind %d is called %q", k, name)
		}
		seen[name] = true
		c := Cause{Kind: k}
		blame := c.Blame()
		if c.Transient() != (blame == Provider) {
			t.Errorf("%v: transient %v, but blame %d", k, c.Transient(), blame)
		}
	}
	if (Canceled + 1).String() != "unknown" {
		t.Error("a kind without a name")
	}
}

// A polite end is never success: whatever way the bytes end, it is a cause
// (FIELD-REPORTS A1).
func TestEveryEndOfBytesIsACause(t *testing.T) {
	want := map[Ending]Kind{
		EOF: TruncatedEOF, Reset: ConnectionReset, Short: ConnectionReset, Garbled: ConnectionReset,
		GoneAway: GoAway, NoConnection: OpenFailed, Untrusted: OpenFailed, HeadTimeout: FirstTokenTimeout, Barred: BreakerOpen, Crowded: StormGuard, Crowded + 1: ConnectionReset,
	}
	for how, kind := range want {
		c := FromEnd(Ended{How: how, NotSent: true, Detail: "d"})
		if c.Kind != kind || !c.NotSent || c.Message != "d" || !c.Transient() || c.Lasting != (how == Untrusted) {
			t.Errorf("ending %d: %+v, want %v", how, c, kind)
		}
	}
}
