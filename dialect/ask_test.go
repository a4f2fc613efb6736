package dialect

import "testing"

func TestAnchorBeginsOnACodePoint(t *testing.T) {
	for n, want := range map[int]string{0: "", 1: "", 2: "é", 3: "bé", 4: "bé", 6: "bé", 7: "😀bé", 100: "a😀bé"} {
		if got := string(anchor([]byte("a😀bé"), n)); got != want {
			t.Errorf("%d: got %q want %q", n, got, want)
		}
	}
}
