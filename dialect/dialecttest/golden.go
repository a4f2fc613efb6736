package dialecttest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/turn"
)

var rewrite = flag.Bool("rewrite", false, "write want.txt of golden cases anew")

// Golden checks every case under dir and returns them for Run. A case is a
// directory: request.json, stream.sse, want.txt (the deltas of each unit, then
// the snapshot) and ORIGIN, which tells who composed it and what after. A decode
// error is part of what is wanted.
func Golden(t *testing.T, d dialect.Dialect, dir string) []Case {
	t.Helper()
	return GoldenIn(t, d, dir, nil)
}

// GoldenAndRun is Golden, and Run with those of the cases that are not apart, the one
// named first in front. id is what their messages are called.
func GoldenAndRun(t *testing.T, d dialect.Dialect, dir, id, first string, apart ...string) {
	t.Helper()
	cases := slices.DeleteFunc(Golden(t, d, dir), func(c Case) bool { return slices.Contains(apart, c.Name) })
	for i := range cases {
		cases[i].ID = id
	}
	at := slices.IndexFunc(cases, func(c Case) bool { return c.Name == first })
	cases[0], cases[at] = cases[at], cases[0]
	Run(t, d, cases)
}

// GoldenIn is Golden for a [dialect.Framed]: stream.sse names the events and their
// data for a reader's eye, frame puts them into the dialect's framing.
func GoldenIn(t *testing.T, d dialect.Dialect, dir string, frame func(dst []byte, name string, data []byte) []byte) []Case {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var cases []Case
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		if _, err := os.Stat(filepath.Join(at, "stream.sse")); err != nil {
			continue // a fuzz corpus, not a case
		}
		c := Case{Name: e.Name(), Request: read(t, at, "request.json"), Stream: read(t, at, "stream.sse")}
		if c.Frame = frame; frame != nil {
			events := Units(c.Stream)
			c.Stream = nil
			for _, e := range events {
				if !e.Comment() {
					c.Stream = frame(c.Stream, string(e.Name), e.Data)
				}
			}
		}
		cases = append(cases, c)
		t.Run(c.Name, func(t *testing.T) {
			if len(bytes.TrimSpace(read(t, at, "ORIGIN"))) == 0 {
				t.Error("ORIGIN is empty")
			}
			got := Transcript(d, c)
			if *rewrite {
				if err := os.WriteFile(filepath.Join(at, "want.txt"), []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want := string(read(t, at, "want.txt")); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
	if len(cases) == 0 {
		t.Fatal("no golden cases found")
	}
	return cases
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Transcript prints a case: a line per delta, a line "-" per unit, then the
// snapshot.
func Transcript(d dialect.Dialect, c Case) string {
	var b strings.Builder
	req, err := d.Parse(c.Request)
	if err != nil {
		return "request: " + err.Error() + "\n"
	}
	dec, s := d.NewDecoder(req), new(turn.Snapshot)
	for _, e := range UnitsOf(d, c.Stream) {
		b.WriteString("-\n")
		ds, err := dec.Decode(nil, e)
		if err != nil {
			b.WriteString("error: " + err.Error() + "\n")
			continue
		}
		for _, delta := range ds {
			b.WriteString(FormatDelta(delta) + "\n")
			if err := s.Fold(delta); err != nil {
				b.WriteString("fold: " + err.Error() + "\n")
			}
		}
	}
	b.WriteString("=\n")
	b.WriteString(Format(s))
	b.WriteString(FormatUsage(s.Usage))
	if s.Finished() {
		b.WriteString("finished\n")
	}
	return b.String()
}
