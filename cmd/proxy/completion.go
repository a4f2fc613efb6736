package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/unbroken-llm/unbroken/bench/gauge"
	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/telemetry"
)

// shells are those that a script can be written for.
var shells = map[string]func(root *cobra.Command, to io.Writer) error{
	"bash": func(root *cobra.Command, to io.Writer) error {
		if _, err := io.WriteString(to, bashWords); err != nil {
			return err
		}
		return root.GenBashCompletionV2(to, true)
	},
	"fish": func(root *cobra.Command, to io.Writer) error { return root.GenFishCompletion(to, true) },
	"zsh":  func(root *cobra.Command, to io.Writer) error { return root.GenZshCompletion(to) },
}

var shellNames = slices.Sorted(maps.Keys(shells))

// bashWords is what the script for bash takes from the package bash-completion,
// for where that is not installed: the words of the line up to the cursor, split
// at blanks only, while bash itself splits them at = and : too.
const bashWords = `if ! declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref()
    {
        local line=${COMP_LINE:0:COMP_POINT}
        read -ra words <<<"$line"
        [[ $line == *[[:space:]] ]] && words+=("")
        cword=$((${#words[@]} - 1))
        cur=${words[cword]} prev=${words[cword - 1]}
    }
fi
`

func newCompletion(env environment) *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a script that completes commands, flags and their values",
		Long: "Print a script for a shell. It asks this program what there is, so that it need not\n" +
			"be made again for another version.",
		Example: "  source <(unbroken completion bash)                                # this shell\n" +
			"  unbroken completion bash > /etc/bash_completion.d/unbroken        # every one\n" +
			"  unbroken completion zsh > \"${fpath[1]}/_unbroken\"\n" +
			"  unbroken completion fish > ~/.config/fish/completions/unbroken.fish",
		ValidArgs: shellNames,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 1 && shells[args[0]] != nil {
				return nil
			}
			return misuse{fmt.Errorf("%s wants the name of a shell: %s", c.CommandPath(), strings.Join(shellNames, ", "))}
		},
		RunE: func(c *cobra.Command, args []string) error {
			var script bytes.Buffer
			if err := shells[args[0]](c.Root(), &script); err != nil {
				return err
			}
			_, err := env.out.Write(script.Bytes())
			return err
		},
	}
}

// enumerated is a value that has words of its own. A word that ends in : or /
// goes on.
type enumerated interface{ words() []string }

func (v choice) words() []string  { return v.among }
func (v level) words() []string   { return levels }
func (v boolean) words() []string { return []string{"true", "false"} }
func (protocol) words() []string  { return []string{auto, telemetry.GRPC, telemetry.HTTP} }

func (storeValue) words() []string {
	return []string{"memory", "file:", "redis://", "rediss://", "redis+sentinel://", "redis+cluster://"}
}

func (v duration) words() []string { return offIf(v.off) }
func (v address) words() []string  { return offIf(v.off) }

func offIf(may bool) []string {
	if may {
		return []string{off}
	}
	return nil
}

// completeSettings offers the words of each setting's flag. Only where a file is
// meant does the shell offer files.
func completeSettings(c *cobra.Command, table []field) {
	for i := range table {
		switch v := table[i].value.(type) {
		case path:
		case enumerated:
			offer(c, table[i].flag(), v.words())
		default:
			offer(c, table[i].flag(), nil)
		}
	}
}

// completeFaults offers what faultinject knows.
func completeFaults(c *cobra.Command) {
	for name, words := range map[string][]string{
		"scenario": faultinject.ScenarioNames(), "seam": faultinject.SeamNames(), "host": faultinject.HostNames(),
		"variant": faultinject.VariantNames(), "log-format": {"text", "json"},
		"listen": nil, "expression": nil, "target": nil, "pace": nil, "seed": nil,
	} {
		offer(c, name, words)
	}
}

// offer completes a flag with words, and never with files.
func offer(c *cobra.Command, flag string, words []string) {
	err := c.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		how := cobra.ShellCompDirectiveNoFileComp
		for _, w := range words {
			if strings.HasSuffix(w, ":") || strings.HasSuffix(w, "/") {
				how |= cobra.ShellCompDirectiveNoSpace
			}
		}
		return words, how
	})
	if err != nil {
		panic("BUG: " + err.Error())
	}
}

// completeBench offers the bench's flags, which it parses itself.
func completeBench(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return benchFlags(), cobra.ShellCompDirectiveNoFileComp
}

func benchFlags() (names []string) {
	gauge.Flags().VisitAll(func(f *flag.Flag) { names = append(names, "--"+f.Name) })
	return names
}
