package jsonwalk

import (
	"strings"
	"testing"
)

func TestPrefix(t *testing.T) {
	for _, c := range []struct {
		name, doc string
		used      int
		want, end State
		top       Kind
		empty     bool
	}{
		{"nothing", ``, 0, Incomplete, Incomplete, KindNone, false},
		{"white space", " \n", 2, Incomplete, Incomplete, KindNone, false},
		{"open object", `{`, 1, Incomplete, Incomplete, KindObject, false},
		{"placeholder", ` { } `, 4, Complete, Complete, KindObject, true},
		{"object", `{"a":{}} tail`, 8, Complete, Complete, KindObject, false},
		{"nested empty object is not empty", `[{}]`, 4, Complete, Complete, KindArray, false},
		{"cut in a string", `{"path":"/a","content":"lin`, 27, Incomplete, Incomplete, KindObject, false},
		{"number has no end of its own", `12`, 2, Incomplete, Complete, KindNumber, false},
		{"number and white space", "12 3", 2, Complete, Complete, KindNumber, false},
		{"cut number", `-`, 1, Incomplete, Incomplete, KindNumber, false},
		{"number runs into a word", `12x`, 2, Invalid, Invalid, KindNumber, false},
		{"literal", `nullx`, 4, Complete, Complete, KindNull, false},
		{"leading zero", `[01]`, 2, Invalid, Invalid, KindArray, false},
		{"trailing comma", `{"a":1,}`, 7, Invalid, Invalid, KindObject, false},
		{"wrong bracket", `[1}`, 2, Invalid, Invalid, KindArray, false},
		{"control character", "{\"a\nb\"", 3, Invalid, Invalid, KindObject, false},
		{"bad escape", `"\x"`, 2, Invalid, Invalid, KindString, false},
		{"two documents", `{}{}`, 2, Complete, Complete, KindObject, true},
		{"prose", `Sure`, 0, Invalid, Invalid, KindNone, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p Prefix
			used, st := p.Push([]byte(c.doc))
			if used != c.used || st != c.want || p.Top() != c.top || p.Empty() != c.empty || p.End() != c.end {
				t.Errorf("used %d %v, end %v, top %v, empty %v", used, st, p.End(), p.Top(), p.Empty())
			}
			if n, again := p.Push([]byte("{}")); (c.end != Incomplete) && (n != 0 || again != c.end) {
				t.Errorf("went on behind the end: %d %v", n, again)
			}
			checkPrefix(t, []byte(c.doc))
		})
	}
}

func TestDepthLimit(t *testing.T) {
	for depth, want := range map[int]bool{256: true, 257: true, MaxDepth: true, MaxDepth + 1: false} {
		mixed := strings.Repeat(`[{"a":`, depth/2) + strings.Repeat("[", depth%2) + strings.Repeat("]", depth%2) + strings.Repeat("1", 1-depth%2) + strings.Repeat("}]", depth/2)
		if got := Valid([]byte(mixed)); got != want {
			t.Errorf("depth %d: %v, want %v", depth, got, want)
		}
	}
}

// Tool arguments are a document inside a string; an escape pair may be split between two deltas, each half an escape.
func TestPushBody(t *testing.T) {
	for _, c := range []struct {
		name   string
		bodies []string
		want   State
		used   int // of the last body
	}{
		{"whole", []string{`{\"a\": \"x\\n\"}`}, Complete, 17},
		{"pair in two deltas", []string{`{\"a\":\"\ud83d`, `\ude00\"}`}, Complete, 9},
		{"doubly escaped pair in two deltas", []string{`{\"a\":\"\\ud8`, `3d\\ude00\"}`}, Complete, 12},
		{"escaped brackets", []string{`\u007b\u007d`}, Complete, 12},
		{"bytes behind the end", []string{`{}\n\n`}, Complete, 2},
		{"number ended by escaped white space", []string{`12\n`}, Complete, 2},
		{"raw text beyond ascii", []string{`{\"ä\":\"😀\"}`}, Complete, 17},
		{"text beyond ascii outside a string", []string{`{\u00e4`}, Invalid, 1},
		{"newline inside a string", []string{`{\"a\nb`}, Invalid, 4},
		{"empty", []string{``}, Incomplete, 0},
		{"broken escape", []string{`{\q`}, Invalid, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			var p Prefix
			var used int
			var st State
			for _, b := range c.bodies {
				used, st = p.PushBody([]byte(b))
			}
			if used != c.used || st != c.want {
				t.Errorf("used %d %v, want %d %v", used, st, c.used, c.want)
			}
		})
	}
}
