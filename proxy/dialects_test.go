package proxy

import (
	"os"
	"strings"
	"testing"
)

// Every dialect that requests can be protected in stands on the pages that say how it is
// protected, and in which cases.
func TestEveryDialectIsOnItsPages(t *testing.T) {
	for page, cell := range map[string]string{"../docs/DIALECTS.md": "| `%` | `", "../docs/SUPPORT.md": " | `%` | "} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range Dialects() {
			if !strings.Contains(string(text), strings.Replace(cell, "%", name, 1)) {
				t.Errorf("%s does not know %s", page, name)
			}
		}
	}
}
