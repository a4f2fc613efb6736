package splice

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestStops(t *testing.T) {
	for _, c := range []struct {
		name, tail, text string
		stops            []string
		keep             int
		hit              string
	}{
		{"d13 straddles the seam", "the EN", "D more", []string{"END"}, 0, "END"},
		{"not begun", "the end", "END more", []string{"END"}, 8, ""},
		{"begun and not completed", "the EN", "TER", []string{"END"}, 3, ""},
		{"complete in the tail already", "the END", "more", []string{"END"}, 4, ""},
		{"two begin, the first to be complete counts", "x\n\n", "\n#", []string{"\n\n\n#", "\n\n\n"}, 0, "\n\n\n"},
		{"both complete, the longer began first", "aab", "c", []string{"bc", "aabc"}, 0, "aabc"},
		{"begins at two places of the tail", "abab", "abc", []string{"ababc"}, 0, "ababc"},
		{"a stop of one byte cannot straddle", "x", "x", []string{"x", ""}, 1, ""},
		{"tail shorter than the stop", "E", "ND", []string{"END"}, 0, "END"},
		{"ends undecided", "E", "N", []string{"END"}, 1, ""},
		{"in the middle of a character", "\xe6\xbc", "\xa2!", []string{"漢"}, 0, "漢"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewStops(c.stops, []byte(c.tail))
			for _, b := range []byte(c.text) {
				s.Push([]byte{b})
			}
			if keep, hit, ok := s.End(); keep != c.keep || hit != c.hit || !ok {
				t.Errorf("keep %d hit %q %v, want %d %q", keep, hit, ok, c.keep, c.hit)
			}
		})
	}
}

// The oracle looks for the first completed occurrence in the joined text that begins in the tail and ends behind it.
func TestStopsAgreeWithAQuadraticOracle(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	hits := 0
	for range 6_000 {
		tail, text := babble(rnd, rnd.IntN(8), "ab"), babble(rnd, rnd.IntN(8), "ab")
		stops := []string{babble(rnd, 1+rnd.IntN(5), "ab"), babble(rnd, 1+rnd.IntN(5), "ab")}
		want := ""
		for end := len(tail) + 1; end <= len(tail+text) && want == ""; end++ {
			for _, s := range stops {
				if end-len(s) < len(tail) && strings.HasSuffix((tail + text)[:end], s) && len(s) > len(want) {
					want = s
				}
			}
		}
		s := NewStops(stops, []byte(tail))
		cut := rnd.IntN(len(text) + 1)
		shown, _, early := s.Push([]byte(text[:cut]))
		s.Push([]byte(text[cut:]))
		keep, hit, ok := s.End()
		if hit != want || !ok || keep != len(text) && hit == "" || keep != 0 && hit != "" {
			t.Fatalf("tail %q text %q stops %q: keep %d hit %q, want %q", tail, text, stops, keep, hit, want)
		}
		if early && shown > 0 && hit != "" {
			t.Fatalf("tail %q text %q stops %q: %d bytes shown before the stop %q was found", tail, text, stops, shown, hit)
		}
		if hit != "" {
			hits++
		}
	}
	if hits < 300 {
		t.Fatalf("only %d hits among the samples", hits)
	}
}
