package openairesponses_test

import (
	"path/filepath"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
)

// TestGolden checks the composed turns and plays the battery with them.
func TestGolden(t *testing.T) {
	cases := dialecttest.Golden(t, d, "testdata")
	for i := range cases {
		cases[i].ID = "resp_composed"
	}
	t.Run("battery", func(t *testing.T) { dialecttest.Run(t, d, cases) })
}

// TestGoldenBroken checks streams that break the protocol: errors, disorder, noise.
func TestGoldenBroken(t *testing.T) { dialecttest.Golden(t, d, filepath.Join("testdata", "broken")) }
