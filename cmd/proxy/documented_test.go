package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/unbroken-llm/unbroken/bench/gauge"
	"github.com/unbroken-llm/unbroken/internal/golden"
)

// docs/CLI.md has every command, every flag and every key: it is written from them.
func TestManualIsTheCommandLine(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("# Command line\n\n" +
		"`unbroken COMMAND --help` says more. `make golden PKG=./cmd/...` writes this page.\n")
	for _, name := range commands() {
		if name == "" { // serve
			continue
		}
		c := command(name)
		shared := map[string]bool{"config": true, "help": true}
		for _, f := range fields(&settings{}, nil) {
			shared[f.flag()] = c.Flags().Lookup("config") != nil
		}
		fmt.Fprintf(&b, "\n## unbroken %s\n\n%s.\n\n```sh\n%s\n```\n", name, c.Short, unindented.ReplaceAllString(c.Example, ""))
		var rows []string
		ownFlags(c).VisitAll(func(f *pflag.Flag) {
			if shared[f.Name] {
				return
			}
			names := "`--" + f.Name + "`"
			if f.Shorthand != "" {
				names += " `-" + f.Shorthand + "`"
			}
			rows = append(rows, fmt.Sprintf("| %s | %s | %s |", names, code(f.DefValue), cell(f.Usage)))
		})
		if c.Flags().Lookup("config") != nil {
			b.WriteString("\nTakes every [setting](#settings) as a flag.\n")
		}
		if len(rows) > 0 {
			fmt.Fprintf(&b, "\n| flag | default | |\n|---|---|---|\n%s\n", strings.Join(rows, "\n"))
		}
	}
	b.WriteString("\n## Settings\n\nEach is a key of the YAML file that `--config` or `UNBROKEN_CONFIG` names, an environment variable and a flag: file < environment < flag.\n" +
		"`unbroken check --example` prints a file of all of them, [unbroken.example.yaml](../unbroken.example.yaml).\n\n" +
		"| key | flag | variable | default | |\n|---|---|---|---|---|\n")
	for _, f := range fields(&settings{}, nil) {
		fmt.Fprintf(&b, "| `%s` | `--%s` | `%s` | %s | %s |\n", f.key, f.flag(), f.env(), code(f.def), cell(f.doc))
	}
	golden.Compare(t, "../../docs/CLI.md", b.Bytes())
}

// ownFlags are the flags of a command, those that it parses itself included.
func ownFlags(c *cobra.Command) *pflag.FlagSet {
	if !c.DisableFlagParsing {
		return c.Flags()
	}
	all := pflag.NewFlagSet(c.Name(), pflag.ContinueOnError)
	if c.Name() == "bench" {
		all.AddGoFlagSet(gauge.Flags())
	}
	return all
}

// What docs/CLI.md says of the commands holds without one too: they serve, and take what serve
// takes. A command that parses its flags itself is one whose flags the page has.
func TestNoFlagIsLeftOut(t *testing.T) {
	command("").Flags().VisitAll(func(f *pflag.Flag) {
		if g := command("serve").Flags().Lookup(f.Name); g == nil || g.DefValue != f.DefValue {
			t.Errorf("unbroken takes --%s, and unbroken serve does not", f.Name)
		}
	})
	for _, name := range commands() {
		c := command(name)
		if c.DisableFlagParsing && !ownFlags(c).HasFlags() {
			t.Errorf("the flags of %s are nowhere", name)
		}
		c.PersistentFlags().VisitAll(func(f *pflag.Flag) { t.Errorf("%s: --%s is not among the command's own", name, f.Name) })
	}
}

var unindented = regexp.MustCompile(`(?m)^  `)

func code(text string) string {
	if text == "" || text == "[]" {
		return ""
	}
	return "`" + text + "`"
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// Every header of ours that the code knows is in docs/HEADERS.md or, for those of
// the provider that breaks its streams, in docs/FAULTS.md; and none that is not.
func TestEveryHeaderIsDocumented(t *testing.T) {
	ours := regexp.MustCompile(`^(?i:x-(?:run|stream|unbroken|fault)-[a-z-]+|x-should-retry|x-accel-buffering|x-stainless-[a-z-]+|idempotency-key)$`)
	known := map[string]bool{}
	for _, pkg := range []string{"proxy", "runs", "upstream", "statuspage", "telemetry", "faultinject", "cmd/proxy"} {
		for text := range literals(t, pkg) {
			if ours.MatchString(text) {
				known[strings.ToLower(text)] = true
			}
		}
	}
	if len(known) < 15 {
		t.Fatalf("only %d headers were found in the code: %v", len(known), known)
	}
	documents := map[string]bool{}
	for _, name := range []string{"HEADERS.md", "FAULTS.md"} {
		b, err := os.ReadFile(filepath.Join("../../docs", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("`([A-Za-z-]+)[`:]").FindAllStringSubmatch(string(b), -1) {
			if ours.MatchString(m[1]) {
				documents[strings.ToLower(m[1])] = true
			}
		}
	}
	for name := range known {
		if !documents[name] {
			t.Errorf("%s is not documented", name)
		}
	}
	for name := range documents {
		if !known[name] {
			t.Errorf("%s is documented, and nothing knows it", name)
		}
	}
}

// literals are the strings in the sources of a package.
func literals(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("../..", pkg, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no sources of %s: %v", pkg, err)
	}
	all := map[string]bool{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				if text, err := strconv.Unquote(l.Value); err == nil {
					all[text] = true
				}
			}
			return true
		})
	}
	return all
}
