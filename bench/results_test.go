package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// made is what make would do, or "" where there is no make.
func made(t *testing.T, args ...string) string {
	t.Helper()
	tool, err := exec.LookPath("make")
	if err != nil {
		t.Log("there is no make here")
		return ""
	}
	c := exec.Command(tool, append([]string{"-n", "-C", "..", "VERSION=v", "COMMIT=c", "DATE=d"}, args...)...)
	// The make that runs this test passes its own arguments on by these.
	c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "MAKE") || strings.HasPrefix(v, "MFLAGS") || strings.HasPrefix(v, "ARGS=")
	})
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// A quick look, make bench ARGS='-rounds 1', wrote its numbers over the committed ones of an
// hour.
func TestAQuickLookLeavesTheCommittedResults(t *testing.T) {
	for target, file := range map[string]string{"bench": "/bench.json", "soak": "-out ", "drill": "-out "} {
		whole, look := made(t, target), made(t, target, "ARGS=-rounds 1")
		if whole == "" {
			return
		}
		const committed, local = "bench/results", "bench/results/local"
		if strings.Contains(whole, local) || !strings.Contains(whole, committed) {
			t.Errorf("make %s does not write %s:\n%s", target, committed, whole)
		}
		if rest := strings.ReplaceAll(look, local, ""); strings.Contains(rest, committed) || !strings.Contains(look, "-rounds 1") || !strings.Contains(look, file) {
			t.Errorf("make %s with ARGS writes %s:\n%s", target, committed, look)
		}
		if !strings.Contains(look, "go to "+local+", which git ignores") {
			t.Errorf("make %s does not say where its results go:\n%s", target, look)
		}
	}
	ignored, err := os.ReadFile("../.gitignore")
	if err != nil || !slices.Contains(strings.Split(string(ignored), "\n"), "/bench/results/local/") {
		t.Errorf("git does not ignore them: %v", err)
	}
}

// The shell's pipe into tee hid that a run had failed.
func TestARunThatFailsFailsMake(t *testing.T) {
	if out := made(t, "bench"); strings.Contains(out, "| tee") {
		t.Errorf("a pipe has the exit code of its end:\n%s", out)
	}
}
