package splice

// Guard keeps the sentinel out of the text behind the seam: some models go on, and then say that nothing is missing
// too. A Seam sees only the head of a continuation; a Guard is fed what follows Verdict.Skip, in an asked continuation.
type Guard struct {
	word string
	fall []int // fall[i]: longest proper prefix of word[:i+1] that also ends it
	got  int   // bytes of word the text ends with
	seen int
	said bool
}

// NewGuard returns the guard against word; "" lets everything pass.
func NewGuard(word string) Guard {
	g := Guard{word: word, fall: make([]int, len(word))}
	for i := 1; i < len(word); i++ {
		k := g.fall[i-1]
		for k > 0 && word[k] != word[i] {
			k = g.fall[k-1]
		}
		if word[k] == word[i] {
			k++
		}
		g.fall[i] = k
	}
	return g
}

// Push takes the next bytes. keep counts the bytes of everything pushed so far that may be shown: all but those that
// may be the beginning of the word, less than its length. Once it was said, the turn is complete and keep stays.
func (g *Guard) Push(p []byte) (keep int, said bool) {
	if g.word == "" {
		g.seen += len(p)
		return g.seen, false
	}
	for _, c := range p {
		if g.said {
			break
		}
		g.seen++
		for g.got > 0 && g.word[g.got] != c {
			g.got = g.fall[g.got-1]
		}
		if g.word[g.got] == c {
			g.got++
		}
		g.said = g.got == len(g.word)
	}
	return g.seen - g.got, g.said
}

// End says that the continuation is over: the beginning of the word alone is text.
func (g *Guard) End() (keep int, said bool) {
	if !g.said {
		g.got = 0
	}
	return g.seen - g.got, g.said
}
