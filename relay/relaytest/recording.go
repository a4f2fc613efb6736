package relaytest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/eventstream"
	"github.com/unbroken-llm/unbroken/sse"
)

// Recording is one provider stream and the request that it answered.
type Recording struct {
	Name    string
	Request []byte
	Units   [][]byte // raw units, comments included
	// Composed: written for this test, for what no recording covers.
	Composed bool
}

// Stream is the recording's bytes.
func (r Recording) Stream() []byte { return bytes.Join(r.Units, nil) }

// Corpus is where the recorded streams lie: UNBROKEN_CORPUS, or shared/corpus
// beside the module; "" when absent.
func Corpus() string {
	dir := os.Getenv("UNBROKEN_CORPUS")
	if dir == "" {
		root, err := os.Getwd()
		if err != nil {
			return ""
		}
		for {
			if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
				break
			}
			up := filepath.Dir(root)
			if up == root {
				return ""
			}
			root = up
		}
		dir = filepath.Join(root, "..", "shared", "corpus")
	}
	if _, err := os.Stat(dir); err != nil {
		return ""
	}
	return dir
}

// Recordings loads the recorded streams of the named corpus folders. fallback is
// the request of a recording that came without one. It skips the test when there
// is no corpus.
func Recordings(t testing.TB, fallback string, named func(payload []byte) string, folders ...string) []Recording {
	t.Helper()
	dir := Corpus()
	if dir == "" {
		t.Skip("no recorded streams: put the corpus at ../shared/corpus or name it in UNBROKEN_CORPUS")
	}
	var out []Recording
	for _, f := range folders {
		names, err := filepath.Glob(filepath.Join(dir, f, "*"))
		if err != nil {
			t.Fatal(err)
		}
		sort.Strings(names)
		for _, p := range names {
			r := Recording{Name: f + "/" + filepath.Base(p), Request: []byte(fallback)}
			b, err := os.ReadFile(p)
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case strings.HasSuffix(p, ".sse"):
				r.Units = Units(b)
			case strings.HasSuffix(p, ".eventstream.bin"):
				r.Units = unitsOf(&eventstream.Scanner{}, b)
			case strings.HasSuffix(p, ".chunks.txt"):
				r.Units = framed(b, named)
			default:
				continue
			}
			meta, err := os.ReadFile(strings.TrimSuffix(p, ".sse") + ".meta.json")
			if err == nil {
				var m struct {
					RequestBody json.RawMessage `json:"request_body"`
				}
				if err := json.Unmarshal(meta, &m); err != nil {
					t.Fatal(err)
				}
				if len(m.RequestBody) > 0 && m.RequestBody[0] == '{' {
					var c bytes.Buffer
					if err := json.Compact(&c, m.RequestBody); err != nil {
						t.Fatal(err)
					}
					r.Request = c.Bytes()
				}
			}
			out = append(out, r)
		}
	}
	return out
}

// Units splits a stream into its raw units.
func Units(b []byte) [][]byte {
	var sc sse.Scanner
	out := unitsOf(&sc, b)
	if e, ok := sc.Rest(); ok {
		out = append(out, sse.Append(nil, string(e.Name), e.Data))
	}
	return out
}

func unitsOf(sc dialect.Scanner, b []byte) (out [][]byte) {
	sc.Push(b)
	for e, ok := sc.Next(); ok; e, ok = sc.Next() {
		out = append(out, bytes.Clone(e.Raw))
	}
	return out
}

// framed makes events of one payload a line.
func framed(b []byte, named func([]byte) string) [][]byte {
	var out [][]byte
	for line := range bytes.Lines(b) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		name := ""
		if named != nil {
			name = named(line)
		}
		out = append(out, sse.Append(nil, name, line))
	}
	return out
}
