package interactions

import (
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
)

// A decode error is what the case apart is about.
func TestGoldenAndBattery(t *testing.T) {
	dialecttest.GoldenAndRun(t, Dialect{}, "testdata", "int-A1", "text", "broken")
}
