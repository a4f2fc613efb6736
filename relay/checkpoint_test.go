package relay_test

import (
	"fmt"

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
	if got, want := relaytest.Outline(log), relaytest.Outline(had); got != want {
		return fmt.Errorf("log holds\n%s\nclient has\n%s", got, want)
	}
	return nil
}
