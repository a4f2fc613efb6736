package splice

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestGuardAgreesWithAPlainSearch(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 8))
	hits := 0
	for range 6_000 {
		word, text := babble(rnd, 1+rnd.IntN(5), "ab"), babble(rnd, rnd.IntN(20), "ab")
		want, missing := len(text), true
		if at := strings.Index(text, word); at >= 0 {
			want, missing = at, false
			hits++
		}
		g := NewGuard(word)
		for i := range len(text) {
			keep, said := g.Push([]byte{text[i]})
			if held := i + 1 - keep; keep > want || !said && (held < 0 || held >= len(word)) {
				t.Fatalf("word %q text %q: %d of %d bytes may be shown, %d in all", word, text, keep, i+1, want)
			}
		}
		if keep, said := g.End(); keep != want || said == missing {
			t.Fatalf("word %q text %q: keep %d said %v, want %d", word, text, keep, said, want)
		}
	}
	if hits < 1_500 {
		t.Fatalf("only %d hits among the samples", hits)
	}
}

func TestGuardWithoutAWord(t *testing.T) {
	g := NewGuard("")
	if keep, said := g.Push([]byte("all")); keep != 3 || said {
		t.Errorf("keep %d, said %v", keep, said)
	}
}
