package agents

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// claudeBinary is what install puts beside this file.
const claudeBinary = "node_modules/.bin/claude"

// require skips the test when Claude Code is not there, or fails it if
// UNBROKEN_REQUIRE, a list, names agents.
func require(t *testing.T) (claude string) {
	t.Helper()
	lack := t.Skipf
	if slices.Contains(strings.FieldsFunc(os.Getenv("UNBROKEN_REQUIRE"), separates), "agents") {
		lack = t.Fatalf
	} else if testing.Short() {
		t.Skip("runs a real agent for minutes: not with -short")
	}
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			lack("there is no %s: install Node.js 20 or later, then make agents", program)
		}
	}
	claude, err := filepath.Abs(claudeBinary)
	if err == nil {
		_, err = os.Stat(claude)
	}
	if err != nil {
		lack("Claude Code is not installed: make agents does that")
	}
	return claude
}

func separates(r rune) bool { return r == ',' || r == ' ' }
