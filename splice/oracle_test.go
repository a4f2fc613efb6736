package splice

import (
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// tokens folds a text the slow way: each character, and one space for a run of white space between two of them.
func tokens(text string) (runes []rune, ends []int) {
	space := false
	for i, r := range text {
		if unicode.IsSpace(r) {
			space = len(runes) > 0
			continue
		}
		if space {
			runes, ends = append(runes, ' '), append(ends, i)
			space = false
		}
		runes, ends = append(runes, r), append(ends, i+utf8.RuneLen(r))
	}
	return runes, ends
}

func solidRunes(rs []rune) (n int) {
	for _, r := range rs {
		if r != ' ' {
			n++
		}
	}
	return n
}

// longest is the dumb quadratic oracle for repeated tails: it tries every one, the longest first.
func longest(said, text string, need int) (cut int) {
	a, _ := tokens(said)
	b, ends := tokens(text)
	for n := min(len(a), len(b)); n > 0; n-- {
		tail := a[len(a)-n:]
		if string(tail) == string(b[:n]) && solidRunes(tail) >= need && tail[0] != ' ' {
			return ends[n-1]
		}
	}
	return 0
}

// babble draws a text from few letters, so that it repeats itself in every way.
func babble(rnd *rand.Rand, n int, alphabet string) string {
	letters := []rune(alphabet)
	var b strings.Builder
	for range n {
		b.WriteRune(letters[rnd.IntN(len(letters))])
	}
	return b.String()
}

func TestRepeatedTailAgreesWithTheQuadraticOracle(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	hits := 0
	for range 6_000 {
		said := "x" + babble(rnd, 1+rnd.IntN(30), "ab é")
		text := babble(rnd, rnd.IntN(10), "ab é")
		if rnd.IntN(2) == 0 {
			text = said[strings.LastIndexByte(said[:1+rnd.IntN(len(said))], ' ')+1:] + text
		}
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
		need := 1 + rnd.IntN(6)
		folded := foldTail([]byte(said))
		tl := tail{text: folded, least: leastTail(folded, need), circle: true}
		if tl.least > len(folded) {
			tl.state = dead
		}
		var f folder
		for i, r := range text {
			raw := []byte(string(r))
			out, _ := f.fold(nil, r, raw)
			for k, b := range out {
				end := i + len(raw)
				if k < len(out)-1 {
					end = i
				}
				tl.push(b, end)
			}
		}
		if tl.state == alive {
			tl.end()
		}
		got := 0
		if tl.state == found {
			got = tl.cut()
			hits++
		}
		if want := longest(said, text, need); got != want {
			t.Fatalf("said %q, continuation %q, at least %d: cut at %d, oracle %d", said, text, need, got, want)
		}
	}
	if hits < 600 {
		t.Fatalf("only %d repetitions among the samples: they prove nothing", hits)
	}
}

// Whatever way a continuation repeats the tail, cut and rest must reassemble to the text the model meant.
func TestARepetitionIsRemovedWhateverItsWhiteSpace(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 1_000 {
		said := "# Tale\n\n" + babble(rnd, 60, "abcdefghij klmnop qrst, é漢") + "end"
		rest := babble(rnd, 1+rnd.IntN(20), "uvw xyz.") + "!"
		runes, _ := tokens(said)
		from := rnd.IntN(len(runes) - 40)
		var again strings.Builder
		for _, r := range runes[from:] {
			if r == ' ' {
				again.WriteString([]string{" ", "\n", "  ", "\t\n "}[rnd.IntN(4)])
				continue
			}
			again.WriteRune(r)
		}
		text := strings.TrimLeft(again.String(), " \n\t") + rest
		v := run(plain(said), text)
		if v.State != Joined || text[v.Skip:] != rest {
			t.Fatalf("said %q, continuation %q: %+v", said, text, v)
		}
	}
}

func TestHowAContinuationIsCutDoesNotMatter(t *testing.T) {
	for _, c := range seamCases {
		whole := run(c.c, c.text)
		for i := range len(c.text) {
			if got := run(c.c, "", c.text[:i], c.text[i:]); got != whole {
				t.Fatalf("%s, cut at %d: %+v, whole %+v", c.name, i, got, whole)
			}
		}
		if got := run(c.c, "", strings.Split(c.text, "")...); got != whole {
			t.Fatalf("%s, character by character: %+v, whole %+v", c.name, got, whole)
		}
		bytes := make([]string, len(c.text))
		for i := range bytes {
			bytes[i] = c.text[i : i+1]
		}
		if got := run(c.c, "", bytes...); len(bytes) > 0 && got != whole {
			t.Fatalf("%s, byte by byte: %+v, whole %+v", c.name, got, whole)
		}
	}
}

func FuzzSeam(f *testing.F) {
	for _, c := range seamCases {
		f.Add(string(c.c.Said), c.text, uint8(c.c.Manner), uint8(c.c.Stripped), uint8(c.c.Anchor), uint16(7))
	}
	f.Fuzz(func(t *testing.T, said, text string, manner, stripped, anchor uint8, at uint16) {
		room := len(said) - len(strings.TrimRightFunc(said, unicode.IsSpace))
		c := Config{Said: []byte(said), Stripped: min(int(stripped), room), Manner: Manner(manner % 3), Anchor: int(anchor), Sentinel: "<<NOTHING_MISSING>>"}
		v := run(c, text)
		cut := min(int(at), len(text))
		if got := run(c, "", text[:cut], text[cut:]); got != v {
			t.Fatalf("cut at %d: %+v, whole %+v", cut, got, v)
		}
		switch {
		case v.State == Holding, v.Skip < 0, v.Skip > len(text), v.Overlap > v.Skip:
			t.Fatalf("%+v", v)
		case v.State == Failed && (v.Skip != 0 && v.Reason != Blank || v.Reason == ""), v.State == Joined && v.Reason != "":
			t.Fatalf("%+v", v)
		case v.State == Joined && utf8.ValidString(text) && !utf8.ValidString(text[v.Skip:]):
			t.Fatalf("a code point is split: %+v", v)
		}
	})
}
