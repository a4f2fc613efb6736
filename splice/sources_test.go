package splice

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// sources are this package's own files: prose, tables and code that repeats itself as code does.
func sources(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil || len(names) == 0 {
		t.Fatalf("no sources: %v", err)
	}
	all := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "_test.go") {
			all[name] = string(text)
		}
	}
	return all
}

// cuts calls f with every seventeenth place where text may be cut, with the white space before it left to Stripped.
func cuts(text string, f func(said, rest string, stripped int)) {
	for i := 40; i < len(text)-1; i += 17 {
		if !utf8.RuneStart(text[i]) {
			continue
		}
		said := text[:i]
		f(said, text[i:], len(said)-len(strings.TrimRightFunc(said, unicode.IsSpace)))
	}
}

// A true prefill is exact wherever the text was cut. The model, which was not sent the white space at the end, says it
// again.
func TestAPrefilledTextJoinsWhereverItWasCut(t *testing.T) {
	for name, text := range sources(t) {
		cuts(text, func(said, _ string, stripped int) {
			from := len(said) - stripped
			more := text[from:min(from+200, len(text))]
			c := Config{Said: []byte(said), Stripped: stripped}
			v := run(c, more)
			if v.State != Joined || v.Skip != stripped || !strings.HasPrefix(text, said+more[v.Skip:]) {
				t.Errorf("%s: %q and %q: %+v", name, said[max(0, from-60):], more, v)
			}
		})
	}
}

// An asked continuation that begins with the demanded anchor is cut exactly, wherever the text was cut.
func TestAnAnchoredTextJoinsWhereverItWasCut(t *testing.T) {
	for name, text := range sources(t) {
		cuts(text, func(said, rest string, stripped int) {
			from := len(said) - stripped
			at := max(0, from-40)
			for !utf8.RuneStart(text[at]) {
				at++
			}
			if strings.TrimSpace(rest) == "" {
				return // Nothing is left to say.
			}
			c := Config{Said: []byte(said), Stripped: stripped, Manner: Asked, Anchor: from - at, Sentinel: "<<NOTHING_MISSING>>"}
			answer := strings.TrimLeftFunc(text[at:min(len(said)+200, len(text))], unicode.IsSpace)
			v := run(c, answer)
			if v.State != Joined || !strings.HasPrefix(text, said+answer[v.Skip:]) {
				t.Errorf("%s: %q and %q: %+v", name, said[max(0, from-60):], answer, v)
			}
		})
	}
}
