package golden

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// taker is a test that takes failures down instead of failing.
type taker struct {
	testing.TB
	failed, logged string
}

func (t *taker) Helper() {}

func (t *taker) Errorf(format string, args ...any) { t.failed += fmt.Sprintf(format, args...) }

func (t *taker) Logf(format string, args ...any) { t.logged += fmt.Sprintf(format, args...) }

func TestCompare(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "want.txt")
	try := func(got string, rewrite bool) *taker {
		r := &taker{TB: t}
		compare(r, file, []byte(got), rewrite)
		return r
	}
	if r := try("a\n", false); !strings.Contains(r.failed, "does not exist") || !strings.Contains(r.failed, "+ a") {
		t.Errorf("missing file: %q", r.failed)
	}
	if _, err := os.Stat(file); err == nil {
		t.Fatal("a comparison wrote the file")
	}
	if r := try("a\nb\n", true); r.failed != "" || !strings.Contains(r.logged, "rewrote") {
		t.Errorf("rewriting: %q %q", r.failed, r.logged)
	}
	if r := try("a\nb\n", false); r.failed != "" || r.logged != "" {
		t.Errorf("same: %q %q", r.failed, r.logged)
	}
	if r := try("a\nb\n", true); r.logged != "" {
		t.Errorf("an equal file was rewritten: %q", r.logged)
	}
	if r := try("a\nc\n", false); !strings.Contains(r.failed, "- b\n+ c") {
		t.Errorf("different: %q", r.failed)
	}
	if got := Read(t, file); string(got) != "a\nb\n" {
		t.Errorf("the file holds %q", got)
	}
	Compare(t, file, []byte("a\nb\n"))
}

func TestDiff(t *testing.T) {
	long := strings.Repeat("same\n", 50)
	for _, tc := range []struct{ name, a, b, want string }{
		{"equal", "a\nb\n", "a\nb\n", ""},
		{"changed", "a\nb\nc\n", "a\nx\nc\n", "  a\n- b\n+ x\n  c"},
		{"added", "a\n", "a\nb\n", "  a\n+ b"},
		{"removed", "a\nb\n", "b\n", "- a\n  b"},
		{"from nothing", "", "a\n", "+ a"},
		{"moved", "a\nb\nc\n", "c\na\nb\n", "+ c\n  a\n  b\n- c"},
		{"final line feed", "a\n", "a", "- a\n+ a\\"},
		{"carriage return", "a\r\n", "a\n", `- a\u000d` + "\n+ a"},
		{"blank at the end", "a \n", "a\n", `- a\x20` + "\n+ a"},
		{"escape and its text", "a\x01\n", `a\u0001` + "\n", `- a\u0001` + "\n" + `+ a\\u0001`},
		{"not UTF-8", "\xff\n", "\uFFFD\n", `- \xff` + "\n+ \uFFFD"},
		{"half a character", "\xef\n", "\uFFFD\n", `- \xef` + "\n+ \uFFFD"},
		{"far apart", long + "a\n" + long, long + "b\n" + long, "  … 48 lines the same\n  same\n  same\n- a\n+ b\n  same\n  same"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Diff([]byte(tc.a), []byte(tc.b)); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
		})
	}
}

// The marked lines of an alignment are the two texts again, and only equal texts
// have an empty diff.
func TestAlignmentHoldsBothTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		text := func() []string {
			s := make([]string, r.IntN(12))
			for i := range s {
				s[i] = string(rune('a' + r.IntN(3)))
			}
			return s
		}
		x, y := text(), text()
		var left, right []string
		for _, l := range align(x, y) {
			if l.mark != "+" {
				left = append(left, l.text)
			}
			if l.mark != "-" {
				right = append(right, l.text)
			}
		}
		if strings.Join(left, "") != strings.Join(x, "") || strings.Join(right, "") != strings.Join(y, "") {
			t.Fatalf("%q, %q became %q, %q", x, y, left, right)
		}
	}
}

func TestHugeDiffsStayReadable(t *testing.T) {
	a, b := bytes.Repeat([]byte("a\n"), 5000), bytes.Repeat([]byte("b\n"), 5000)
	if got := strings.Count(Diff(a, b), "\n"); got > maxLines+1 {
		t.Errorf("%d lines", got)
	}
}
