package telemetry

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/internal/golden"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/planner"
	"github.com/unbroken-llm/unbroken/turn"
)

// METRICS.md is what names.go says.
func TestManualIsTheCode(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Metrics\n\n" +
		"What `/metrics` on the admin listener tells, in the text format of Prometheus. `make golden PKG=./telemetry` writes this page from\n" +
		"telemetry/names.go. The metrics of the Go runtime (`go_…`) and of the process (`process_…`) are there too.\n\n" +
		"Label values are from these lists or from the configuration, never from a client or a provider: what is not listed is\n" +
		"counted as `other`. Models and run ids are in traces and in the log (docs/TELEMETRY.md).\n\n" +
		"| metric | kind | labels | what it tells |\n|---|---|---|---|\n")
	lists := map[string][]string{}
	for _, m := range Metrics() {
		var labels []string
		for _, l := range m.Labels {
			name := l.Name
			if l.Values != nil {
				if have, ok := lists[name]; ok && !slices.Equal(have, l.Values) {
					name = l.Name + " of " + m.Name
				}
				lists[name] = l.Values
			}
			labels = append(labels, "`"+l.Name+"`")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Kind, strings.Join(labels, " "), m.Help)
	}
	b.WriteString("\n## Label values\n\n`upstream` is a name from the configuration, `version` and `go` are the build's.\n\n| label | values |\n|---|---|\n")
	var names []string
	for name := range lists {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		of := strings.Replace(name, " of ", "` of `", 1)
		fmt.Fprintf(&b, "| `%s` | `%s` |\n", of, strings.Join(lists[name], "` `"))
	}
	golden.Compare(t, filepath.Join("..", "METRICS.md"), []byte(b.String()))
}

// Names follow Prometheus' customs: a unit at the end, _total for what only grows.
func TestNamesAreWellFormed(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range Metrics() {
		switch {
		case !regexp.MustCompile(`^unbroken_[a-z_]+$`).MatchString(m.Name), seen[m.Name]:
			t.Errorf("%s: ill-formed, or there twice", m.Name)
		case m.Help == "" || !strings.HasSuffix(m.Help, "."):
			t.Errorf("%s: help %q is no sentence", m.Name, m.Help)
		case (m.Kind == Counter) != strings.HasSuffix(m.Name, "_total"):
			t.Errorf("%s is a %s", m.Name, m.Kind)
		case (m.Kind == Histogram) != (m.Buckets != nil):
			t.Errorf("%s: a %s with buckets %v", m.Name, m.Kind, m.Buckets)
		}
		seen[m.Name] = true
	}
}

// The lists of label values end where the packages' own lists end.
func TestListsAreWhole(t *testing.T) {
	for k := interrupt.ConnectionReset; k.String() != "unknown"; k++ {
		if !slices.Contains(causeLabel.Values, k.String()) {
			t.Errorf("cause %s is in no list", k)
		}
	}
	for k := planner.Refuse; k.String() != "plan?"; k++ {
		if !slices.Contains(planLabel.Values, k.String()) {
			t.Errorf("plan %s is in no list", k)
		}
	}
	for m := turn.NoManner; m.String() != "manner?"; m++ {
		if !slices.Contains(mannerLabel.Values, m.String()) {
			t.Errorf("manner %s is in no list", m)
		}
	}
}

// Every reason that the planner can give is in the list, and no other.
func TestReasonsAreThePlanners(t *testing.T) {
	said := map[string]bool{}
	for _, f := range sources(t, "planner") {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if name, ok := n.Fun.(*ast.Ident); ok && name.Name == "refuse" {
					note(said, n.Args[0])
				}
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"restart", "restartWithdrawn", "proceed"}, s.Sel.Name) {
					note(said, n.Args[len(n.Args)-1])
				}
			case *ast.KeyValueExpr:
				if k, ok := n.Key.(*ast.Ident); ok && k.Name == "Reason" {
					note(said, n.Value)
				}
			case *ast.AssignStmt:
				if v, ok := n.Lhs[0].(*ast.Ident); ok && v.Name == "no" {
					note(said, n.Rhs[0])
				}
			}
			return true
		})
	}
	if len(said) < 20 {
		t.Fatalf("only %d reasons were found: the planner says them in another way now", len(said))
	}
	for reason := range said {
		if reasonLabel.token(reason) == other {
			t.Errorf("reason %q is in no list", reason)
		}
	}
	for _, listed := range reasonLabel.Values {
		if listed != other && !said[listed] && !said[listed+":"] {
			t.Errorf("nobody gives the reason %q", listed)
		}
	}
}

// Every word that a stream's outcome can begin with is in the list.
func TestOutcomesAreTheStreams(t *testing.T) {
	said := map[string]bool{}
	for _, f := range append(sources(t, "relay"), sources(t, "proxy")...) {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if s, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains([]string{"finalize", "finishLocally", "stop"}, s.Sel.Name) && len(n.Args) > 1 {
					note(said, n.Args[len(n.Args)-1])
				}
			case *ast.AssignStmt:
				for i, l := range n.Lhs {
					if s, ok := l.(*ast.SelectorExpr); ok && s.Sel.Name == "outcome" && i < len(n.Rhs) {
						note(said, n.Rhs[i])
					}
				}
			}
			return true
		})
	}
	if len(said) < 10 {
		t.Fatalf("only %d outcomes were found: they are said in another way now", len(said))
	}
	for word := range said {
		if outcomeLabel.token(word) == other {
			t.Errorf("outcome %q is in no list", word)
		}
	}
}

// note takes the string that an expression is, or begins with.
func note(said map[string]bool, e ast.Expr) {
	if b, ok := e.(*ast.BinaryExpr); ok && b.Op == token.ADD {
		e = b.X
	}
	if l, ok := e.(*ast.BasicLit); ok && l.Kind == token.STRING {
		if s, err := strconv.Unquote(l.Value); err == nil && s != "" {
			said[s] = true
		}
	}
}

// sources parses the files of a package of this module.
func sources(t *testing.T, pkg string) (all []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", pkg, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no sources of %s: %v", pkg, err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, src, 0)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	return all
}
