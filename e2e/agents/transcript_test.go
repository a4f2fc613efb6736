package agents

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// transcript is the output of one run, reduced to what must be the same whatever
// the provider did: no ids, no clocks, no counts of tokens, and deltas joined,
// since a word may arrive in one piece or in two.
type transcript struct {
	seen    []string
	retries int // the agent told of another attempt
	final   string
	in, out int // tokens, as the agent adds them up
}

// thought begins the lines of a transcript that are reasoning.
const thought = "thinking "

func (t *transcript) say(format string, args ...any) {
	t.seen = append(t.seen, fmt.Sprintf(format, args...))
}

// eachLine reads an output that is one JSON document a line.
func eachLine[M any](out []byte, add func(M)) error {
	for raw := range bytes.Lines(out) {
		var m M
		if err := json.Unmarshal(raw, &m); err != nil {
			return fmt.Errorf("line %q: %w", clip(raw), err)
		}
		add(m)
	}
	return nil
}

// drifts is what differs between two runs of the same command: process ids and
// wall clocks that an agent puts around its output.
var drifts = regexp.MustCompile(`(Chunk ID: |Wall time:? |PGID: )[0-9a-f.]+`)

// mask takes out of a text what drifts.
func mask(text string) string { return drifts.ReplaceAllString(text, "$1…") }

// thoughtless is a transcript without reasoning. Reasoning that was cut cannot go
// on: what was shown of it stays, as a block of its own, and it begins anew.
func (t transcript) thoughtless() transcript {
	t.seen = slices.DeleteFunc(slices.Clone(t.seen), func(l string) bool {
		return strings.HasPrefix(l, thought)
	})
	return t
}

// difference shows where two transcripts part.
func (t transcript) difference(want transcript) string {
	for i := range max(len(t.seen), len(want.seen)) {
		if i >= len(t.seen) || i >= len(want.seen) || t.seen[i] != want.seen[i] {
			return fmt.Sprintf("from line %d it saw\n  %s\nand without a fault\n  %s", i+1,
				strings.Join(t.seen[min(i, len(t.seen)):], "\n  "), strings.Join(want.seen[min(i, len(want.seen)):], "\n  "))
		}
	}
	return ""
}
