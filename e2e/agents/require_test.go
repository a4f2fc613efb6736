package agents

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// installed is where install puts the agents, beside this file.
const installed = "node_modules"

// require skips the test when an agent is not there, or fails it if
// UNBROKEN_REQUIRE, a list, names agents.
func require(t *testing.T, a agent) (path string) {
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
	path, err := filepath.Abs(filepath.Join(installed, filepath.FromSlash(a.program)))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		lack("%s is not installed: make agents does that, where there is one for the platform", a.name)
	}
	return path
}

func separates(r rune) bool { return r == ',' || r == ' ' }
