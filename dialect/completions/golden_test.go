package completions

import (
	"slices"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
)

// Cases whose decode error is what they are about.
var undecodable = []string{"broken-json"}

func TestGoldenAndBattery(t *testing.T) {
	cases := dialecttest.Golden(t, Dialect{}, "testdata")
	cases = slices.DeleteFunc(cases, func(c dialecttest.Case) bool { return slices.Contains(undecodable, c.Name) })
	for i := range cases {
		cases[i].ID = "cmpl-A1"
	}
	at := slices.IndexFunc(cases, func(c dialecttest.Case) bool { return c.Name == "text-with-usage" })
	cases[0], cases[at] = cases[at], cases[0]
	dialecttest.Run(t, Dialect{}, cases)
}
