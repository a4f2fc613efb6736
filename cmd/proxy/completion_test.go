package main

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// What a real bash offers, with the script sourced and nothing else installed.
func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Log("not run: there is no bash")
		return
	}
	for _, tc := range []struct{ line, want string }{
		{"unbroken fa", "faults"},
		{"unbroken ", "bench check completion demo faults health help serve version"},
		{"unbroken serve --log-l", "--log-level"},
		{"unbroken serve --log-level ", "debug error info warn"},
		{"unbroken --log-format=", "json text"},
		{"unbroken --store redis+", "redis+cluster:// redis+sentinel://"},
		{"unbroken check --adopt-identical f", "false"},
		{"unbroken faults --scenario para", "parallel"},
		{"unbroken faults --seam rest", "restart restart-diverge"},
		{"unbroken bench --round", "--rounds"},
		{"unbroken completion ", "bash fish zsh"},
		{"unbroken serve --max-body ", ""},
		{"unbroken nonsense ", ""},
	} {
		t.Run(tc.line, func(t *testing.T) {
			script := `source <(unbroken completion bash)
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9
__start_unbroken 2>/dev/null
printf '%s\n' "${COMPREPLY[@]}"`
			cmd := exec.Command(bash, "--norc", "--noprofile", "-c", script, "bash", tc.line)
			cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "COLUMNS=200"} // testscript.Main has put unbroken there
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(string(out)) {
				if word, _, _ := strings.Cut(strings.TrimSpace(line), " "); word != "" { // a description follows
					got = append(got, word)
				}
			}
			slices.Sort(got)
			if strings.Join(got, " ") != tc.want {
				t.Errorf("offers %q, not %q", got, tc.want)
			}
		})
	}
}

func TestCompletionIsPrinted(t *testing.T) {
	for shell, part := range map[string]string{"bash": "complete -o default", "zsh": "#compdef unbroken", "fish": "complete -c unbroken"} {
		var out, complaints bytes.Buffer
		if code := run(t.Context(), environment{args: []string{"completion", shell}, out: &out, err: &complaints}); code != 0 || !strings.Contains(out.String(), part) {
			t.Errorf("%s: %d, no %q\n%s", shell, code, part, complaints.String())
		}
	}
	var complaints bytes.Buffer
	if code := run(t.Context(), environment{args: []string{"completion", "cmd.exe"}, out: &bytes.Buffer{}, err: &complaints}); code != exitMisuse ||
		complaints.String() != "unbroken: unbroken completion wants the name of a shell: bash, fish, zsh\n" {
		t.Errorf("%d %s", code, complaints.String())
	}
}

// commands are all commands, each built anew: parsing leaves marks in them.
func commands() []string {
	var names []string
	for _, c := range newRoot(environment{}).Commands() {
		names = append(names, c.Name())
	}
	return append(names, "")
}

// command finds one; "" is the root.
func command(name string) *cobra.Command {
	root := newRoot(environment{})
	if name == "" {
		return root
	}
	c, _, err := root.Find([]string{name})
	if err != nil {
		panic(err)
	}
	return c
}

// Every command shows examples, and they are what it takes.
func TestExamplesParse(t *testing.T) {
	for _, name := range commands() {
		t.Run(name, func(t *testing.T) {
			shown := 0
			for line := range strings.Lines(command(name).Example) {
				call := called.FindStringSubmatch(strings.TrimSpace(line))
				if call == nil {
					continue
				}
				shown++
				args := words.FindAllString(call[1], -1)
				for i := range args {
					args[i] = strings.Trim(args[i], "'")
				}
				c, rest, err := newRoot(environment{}).Find(args)
				if err != nil {
					t.Errorf("%s: %v", line, err)
					continue
				}
				if name != "" && c.Name() != name {
					t.Errorf("%s: an example of %s", line, c.Name())
				}
				if c.DisableFlagParsing {
					for _, arg := range rest {
						if strings.HasPrefix(arg, "-") && !slices.Contains(benchFlags(), arg) {
							t.Errorf("%s: there is no %s", line, arg)
						}
					}
					continue
				}
				if err := c.ParseFlags(rest); err != nil {
					t.Errorf("%s: %v", line, err)
				} else if err := c.ValidateArgs(c.Flags().Args()); err != nil {
					t.Errorf("%s: %v", line, err)
				}
			}
			if shown == 0 {
				t.Error("it has no example")
			}
		})
	}
}

// called is the first call of unbroken on a line, up to a comment, a pipe or a
// redirection.
var called = regexp.MustCompile(`\bunbroken( (?:'[^']*'|[^'|#>)])*|$)`)

// Every flag says what it is for.
func TestEveryFlagIsExplained(t *testing.T) {
	for _, name := range commands() {
		ownFlags(command(name)).VisitAll(func(f *pflag.Flag) {
			if len(f.Usage) < 8 {
				t.Errorf("%s --%s: %q", name, f.Name, f.Usage)
			}
		})
	}
}
