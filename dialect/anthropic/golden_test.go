package anthropic_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/anthropic"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/sse"
)

var d anthropic.Dialect

// TestGolden checks the composed turns and plays the battery with them.
func TestGolden(t *testing.T) {
	cases := dialecttest.Golden(t, d, "testdata")
	for i := range cases {
		cases[i].ID = "msg_composed"
	}
	t.Run("battery", func(t *testing.T) { dialecttest.Run(t, d, cases) })
}

// TestGoldenBroken checks streams that break the protocol: errors, disorder, noise.
func TestGoldenBroken(t *testing.T) { dialecttest.Golden(t, d, filepath.Join("testdata", "broken")) }

// TestCorpus plays the battery with the recorded Messages streams.
func TestCorpus(t *testing.T) {
	var cases []dialecttest.Case
	for _, r := range recordings(t) {
		if r.name == "spliced-message-start" || len(r.stream) > 64<<10 {
			continue // has a test of its own; the battery is quadratic
		}
		cases = append(cases, dialecttest.Case{Name: r.name, Request: []byte(hello), Stream: r.stream})
	}
	dialecttest.Run(t, d, cases)
}

const hello = `{"model":"claude-sonnet-4-5","max_tokens":1024,"stream":true,"messages":[{"role":"user","content":"Hello"}]}`

type recording struct {
	name   string
	stream []byte
}

// recordings reads the corpus. Files of bare chunks get the event lines that the provider sends with them.
func recordings(t testing.TB) []recording {
	t.Helper()
	dir := os.Getenv("UNBROKEN_CORPUS")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "corpus")
	}
	files, err := filepath.Glob(filepath.Join(dir, "anthropic", "*"))
	if err != nil || len(files) == 0 {
		t.Skip("no recorded streams: set UNBROKEN_CORPUS to the corpus directory")
	}
	var out []recording
	for _, f := range files {
		name, sseFile := strings.CutSuffix(filepath.Base(f), ".sse")
		name, chunks := strings.CutSuffix(name, ".chunks.txt")
		if !sseFile && !chunks {
			continue
		}
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if chunks {
			b = framed(t, b)
		}
		out = append(out, recording{name, b})
	}
	return out
}

func framed(t testing.TB, lines []byte) (out []byte) {
	for line := range strings.Lines(string(lines)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		_, typ, ok := strings.Cut(line, `"type":"`)
		if typ, _, _ = strings.Cut(typ, `"`); !ok {
			t.Fatalf("chunk without a type: %s", line)
		}
		// The first "type" of a line is the event's: all recordings of this form start with it.
		out = sse.Append(out, typ, []byte(line))
	}
	return out
}
