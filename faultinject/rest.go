package faultinject

import (
	"slices"
	"strings"
)

// Rest returns the honest continuation of a: what a model that meant to say a
// still has to say once saidText was said. saidText is the joined text of all
// text blocks, as delivered so far, possibly without its trailing whitespace
// (a continuation request must not carry it: WIRE 2.2); the rest then starts
// with that whitespace again.
//
// Blocks other than text are settled by where the text stands: those that
// come before text that was said are over, those after it are still to come.
// A source is not cited again for what was said. It reports false when saidText
// is not the beginning of a's text.
func Rest(a Answer, saidText string) (Answer, bool) {
	if !strings.HasPrefix(a.Text(), saidText) {
		return Answer{}, false
	}
	rest := a
	rest.Blocks = nil
	for i, k := range a.Blocks {
		if saidText == "" {
			rest.Blocks = append(rest.Blocks, a.Blocks[i:]...)
			return rest, true
		}
		if k.Kind != TextBlock {
			continue
		}
		n := min(len(saidText), len(k.Text))
		saidText = saidText[n:]
		if n < len(k.Text) {
			said := k.Text[:n]
			k.Text = k.Text[n:]
			k.Cites = slices.DeleteFunc(slices.Clone(k.Cites), func(c Cite) bool { return strings.Contains(said, c.Phrase) })
			rest.Blocks = append(append(rest.Blocks, k), a.Blocks[i+1:]...)
			return rest, true
		}
	}
	return rest, true
}

// afterSearches leaves out of a, which is the rest of whole, what came before
// the n-th search, or run of code, of the provider's own was over.
func (a Answer) afterSearches(whole Answer, n int) Answer {
	said := len(whole.Blocks) - len(a.Blocks)
	for i, k := range whole.Blocks {
		if n == 0 {
			break
		}
		if k.Kind == SearchBlock || k.Kind == CodeBlock {
			n--
			if i >= said {
				a.Blocks = whole.Blocks[i+1:]
			}
		}
	}
	return a
}
