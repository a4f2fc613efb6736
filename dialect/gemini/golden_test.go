package gemini

import (
	"slices"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
)

// Cases that the battery cannot play: a decode error is what one is about, and the
// tokens of a later attempt, which the battery would have survive, are dropped on
// purpose in the other (TestALaterAttemptsTokenNeverLeaves).
var apart = []string{"broken", "checkpoints"}

func TestGoldenAndBattery(t *testing.T) {
	cases := dialecttest.Golden(t, Dialect{}, "testdata")
	cases = slices.DeleteFunc(cases, func(c dialecttest.Case) bool { return slices.Contains(apart, c.Name) })
	for i := range cases {
		cases[i].ID = "resp-A1"
	}
	at := slices.IndexFunc(cases, func(c dialecttest.Case) bool { return c.Name == "text" })
	cases[0], cases[at] = cases[at], cases[0]
	dialecttest.Run(t, Dialect{}, cases)
}
