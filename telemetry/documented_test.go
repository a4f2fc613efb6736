package telemetry

import (
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"testing"
)

// docs/TELEMETRY.md has every attribute and event of a span, and none that there is not.
func TestSpansAreDocumented(t *testing.T) {
	name := regexp.MustCompile(`^(unbroken|gen_ai|http|error)\.[a-z_.]+$`)
	said := map[string]bool{}
	for _, f := range sources(t, "telemetry") {
		ast.Inspect(f, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if s, err := strconv.Unquote(l.Value); err == nil && name.MatchString(s) {
					said[s] = true
				}
			}
			return true
		})
	}
	if len(said) < 30 {
		t.Fatalf("only %d names were found in the code: %v", len(said), said)
	}
	manual, err := os.ReadFile("../docs/TELEMETRY.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("`([a-z_.]+)`").FindAllStringSubmatch(string(manual), -1) {
		if name.MatchString(m[1]) {
			documented[m[1]] = true
		}
	}
	for s := range said {
		if !documented[s] {
			t.Errorf("%s is not documented", s)
		}
	}
	for s := range documented {
		if !said[s] {
			t.Errorf("%s is documented, and no span has it", s)
		}
	}
}
