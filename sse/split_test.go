package sse

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// everySplit checks the scanner's main law on one input: for a split at every stride-th position, and byte by byte, the
// units are the same as without a split, and their raw bytes with the unfinished ones are the input.
func everySplit(t *testing.T, in []byte, stride int) {
	t.Helper()
	var s Scanner
	want := check(t, &s, in, in)
	for at := 0; at <= len(in); at += stride {
		s.Reset()
		same(t, in, at, check(t, &s, in, in[:at], in[at:]), want)
	}
	s.Reset()
	same(t, in, -1, check(t, &s, in, chop(in, 1)...), want)
}

func check(t *testing.T, s *Scanner, in []byte, pieces ...[]byte) []unit {
	t.Helper()
	units := scan(s, pieces...)
	var raw strings.Builder
	for _, u := range units {
		raw.WriteString(u.raw)
	}
	if rest, _ := s.Rest(); raw.Len()+s.Unfinished() != len(in) || raw.String()+string(rest.Raw) != string(in) {
		t.Fatalf("%d raw and %d unfinished bytes do not make up the %d of the input", raw.Len(), s.Unfinished(), len(in))
	}
	return units
}

// same compares two readings of one input: they must be equal to the byte. Only where a stream mixes lone CRs with CRLFs
// may an LF end up on the other side of the boundary it belongs to, and a unit that ends in a lone CR still be waiting.
func same(t *testing.T, in []byte, at int, got, want []unit) {
	t.Helper()
	crlf, cr := bytes.Count(in, []byte("\r\n")), bytes.Count(in, []byte("\r"))
	trim := ""
	if crlf > 0 && cr > crlf {
		trim = "\n"
		if n := len(want) - len(got); n == 1 && strings.HasSuffix(want[len(got)].raw, "\r") {
			want = want[:len(got)]
		} else if n == -1 && strings.HasSuffix(got[len(want)].raw, "\r") {
			got = got[:len(want)]
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%.80q split at %d:\n%s\nwant:\n%s", in, at, show(got), show(want))
	}
	for i, g := range got {
		w := want[i]
		if !equal(g.name, w.name) || !equal(g.data, w.data) || strings.Trim(g.raw, trim) != strings.Trim(w.raw, trim) {
			t.Fatalf("%.80q split at %d: unit %d is %v %q, want %v %q", in, at, i, g, g.raw, w, w.raw)
		}
	}
}

func equal(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

// All streams of up to six tokens, split everywhere: small enough to try, and every corner of line ends lies in there.
func TestEverySplitOfShortStreams(t *testing.T) {
	tokens := []string{"\n", "\r", ":", "data", "\ufeff"}
	var grow func(in string, left int)
	grow = func(in string, left int) {
		everySplit(t, []byte(in), 1)
		for _, token := range tokens {
			if left > 0 {
				grow(in+token, left-1)
			}
		}
	}
	grow("", 6)
}

func TestEverySplitOfTheCorpus(t *testing.T) {
	root := os.Getenv("UNBROKEN_CORPUS")
	if root == "" {
		root = filepath.Join("..", "..", "shared", "corpus")
	}
	if _, err := os.Stat(root); err != nil {
		t.Skip("no corpus of recorded streams; set UNBROKEN_CORPUS")
	}
	files := 0
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".sse" {
			return err
		}
		files++
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			in, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			everySplit(t, in, max(1, len(in)*len(in)/3_000_000))
		})
		return nil
	})
	if err != nil || files == 0 {
		t.Fatalf("%d streams read: %v", files, err)
	}
}

func FuzzSplit(f *testing.F) {
	for _, in := range []string{
		"event: a\ndata: b\n\n", "data: a\r\ndata: b\r\n\r\n: c\r\n", "data: a\r\r:b\r\r\n\n", "\ufeffdata\n\n", "\ufeff\r\n", "\xef\xbb", ":\r", "\r\n\r\n",
		"id: 1\n: x\ndata:\n\nevent\n\n", "data: \u2028\n\n",
	} {
		f.Add([]byte(in), uint16(3), uint16(7))
	}
	f.Fuzz(func(t *testing.T, in []byte, a, b uint16) {
		var s Scanner
		want := check(t, &s, in, in)
		i := int(a) % (len(in) + 1)
		j := i + int(b)%(len(in)-i+1)
		for _, pieces := range [][][]byte{{in[:i], in[i:j], in[j:]}, chop(in, 1), chop(in, 1+int(a)%16)} {
			s.Reset()
			same(t, in, i, check(t, &s, in, pieces...), want)
		}
		if e, ok := s.Rest(); ok {
			framed := e.Reframe(nil)
			var again Scanner
			units := scan(&again, framed, []byte("data: after\n\n"))
			if len(units) == 0 || units[len(units)-1].String() != `- "after"` {
				t.Fatalf("%q reframed to %q swallows the event behind it: %v", e.Raw, framed, units)
			}
		}
	})
}
