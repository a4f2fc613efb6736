package relay_test

import (
	"fmt"
	"strings"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

// logHolds checks that the checkpoint log is what the client has: whoever takes
// the turn over must go on from exactly that.
func logHolds(d dialect.Dialect, request []byte, res relaytest.Result) error {
	if res.Head == nil || !res.Head.Stream {
		return nil
	}
	had, _, err := relaytest.Fold(d, mustParse(d, request), res.Body)
	if err != nil {
		return fmt.Errorf("client bytes: %w", err)
	}
	log, err := turn.Replay(res.Log)
	if err != nil {
		return err
	}
	if got, want := outline(log), outline(had); got != want {
		return fmt.Errorf("log holds\n%s\nclient has\n%s", got, want)
	}
	return nil
}

// outline is a message in words, without what cannot be read back off the wire:
// where adjacent text of one kind was divided, and what was withdrawn.
func outline(s *turn.Snapshot) string {
	var out []string
	last := turn.BlockKind(0)
	for i := range s.Blocks {
		b := &s.Blocks[i]
		text := string(b.Plain())
		if b.IsCall() {
			out = append(out, fmt.Sprintf("%v %s %s %q complete=%v", b.Kind, b.ID, b.Name, text, b.Complete()))
			last = b.Kind
			continue
		}
		if text == "" && len(b.Raw) == 0 {
			continue
		}
		if b.Kind == last && (b.Kind == turn.Prose || b.Kind == turn.Refusal) {
			out[len(out)-1] += text
			continue
		}
		out = append(out, fmt.Sprintf("%v %s %s", b.Kind, b.Signature, text))
		last = b.Kind
	}
	for i, e := range s.Ends {
		if e.Why == turn.Unfinished {
			continue
		}
		out = append(out, fmt.Sprintf("end %d %v", i, e.Why))
	}
	return strings.Join(out, "\n")
}
