package gemini

import (
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
)

// Cases that the battery cannot play: a decode error is what one is about, and the
// tokens of a later attempt, which the battery would have survive, are dropped on
// purpose in the other (TestALaterAttemptsTokenNeverLeaves).
var apart = []string{"broken", "checkpoints"}

func TestGoldenAndBattery(t *testing.T) {
	dialecttest.GoldenAndRun(t, Dialect{}, "testdata", "resp-A1", "text", apart...)
}
