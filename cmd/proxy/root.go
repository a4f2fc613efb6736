package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const rootLong = `Unbroken sits between an LLM application and its provider. A stream that breaks in
the middle is continued, and spliced into the same response: the SDK sees one
whole message.

Without a command it serves. Point an SDK at it:

  export OPENAI_BASE_URL=http://127.0.0.1:8790/v1
  export ANTHROPIC_BASE_URL=http://127.0.0.1:8790`

const rootExample = `  unbroken                                     # serve, for OpenAI and Anthropic
  unbroken demo                                # see a stream break and heal; no key, no network
  unbroken --upstream local=http://127.0.0.1:8000/v1   # reachable under /u/local/v1
  unbroken faults -e 'attempt 1: rst after event 3'    # a provider that breaks on purpose`

func newRoot(env environment) *cobra.Command {
	root := newServe(env)
	root.Use, root.Short = "unbroken", "A proxy that heals broken LLM streams"
	root.Long, root.Example = rootLong, rootExample
	root.SilenceErrors, root.SilenceUsage = true, true
	root.CompletionOptions.DisableDefaultCmd = true // there is one of ours
	root.SetArgs(env.args)
	root.SetIn(env.in)
	root.SetOut(env.out)
	root.SetErr(env.err)
	root.Args = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		return unknownCommand(c, args[0])
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(newServe(env), newDemo(env), newBench(env), newFaults(env), newCheck(env), newHealth(env), newVersion(env), newCompletion(env))
	return root
}

func unknownCommand(root *cobra.Command, word string) error {
	var names []string
	for _, sub := range root.Commands() {
		names = append(names, sub.Name())
	}
	return misuse{fmt.Errorf("unknown command %q%s see unbroken --help", word, or(didYouMean(word, names), ";"))}
}

// helpOnWhatExists has the help command, which is cobra's, refuse a topic that is no command.
func helpOnWhatExists(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() != "help" {
			continue
		}
		c.Args = func(_ *cobra.Command, args []string) error {
			if to, _, err := root.Find(args); len(args) > 0 && (err != nil || to == root) {
				return unknownCommand(root, args[0])
			}
			return nil
		}
	}
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// flagError makes one line of a flag that cannot be read, with the flag that was
// probably meant.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		name := "--" + unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			return misuse{fmt.Errorf("unknown flag -%s; see %s --help", unknown.GetSpecifiedName(), c.CommandPath())}
		}
		for _, sub := range c.Root().Commands() {
			if name == "--"+sub.Name() {
				return misuse{fmt.Errorf("unknown flag %s; it is a command: %s", name, sub.CommandPath())}
			}
		}
		return misuse{fmt.Errorf("unknown flag %s%s see %s --help", name, or(didYouMean(name, names), ";"), c.CommandPath())}
	}
	return misuse{err}
}

func noArgs(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return misuse{fmt.Errorf("%s takes no arguments, but was given %q: see %s --help", c.CommandPath(), args[0], c.CommandPath())}
}

// configFlags are the flags of the settings, on one command.
type configFlags struct {
	set  *pflag.FlagSet
	file string
}

// addConfigFlags gives a command a flag for every setting.
func addConfigFlags(c *cobra.Command) *configFlags {
	f := &configFlags{set: c.Flags()}
	f.set.SortFlags = false
	f.set.StringVar(&f.file, "config", "", "YAML `FILE` of settings; unbroken check --example prints one ("+envConfig+")")
	table := fields(&settings{}, nil)
	for i := range table {
		t := &table[i]
		f.set.Var(&rawFlag{key: t.key, def: t.def, kind: t.value.kind()}, t.flag(), t.doc)
	}
	completeSettings(c, table)
	return f
}

// load merges everything there is.
func (f *configFlags) load(env environment) *loading {
	var flags []given
	f.set.Visit(func(p *pflag.Flag) {
		if raw, ok := p.Value.(*rawFlag); ok {
			flags = append(flags, given{raw.key, raw.texts})
		}
	})
	return load(env, configFile(env, f.file), flags)
}

// rawFlag keeps what a flag was given. It is parsed with the rest, so that the
// same mistake reads the same wherever it is made.
type rawFlag struct {
	key, def, kind string
	texts          []string
}

func (r *rawFlag) Set(text string) error { r.texts = append(r.texts, text); return nil }

func (r *rawFlag) String() string { return r.def }

// Type is what --help shows as the flag's argument.
func (r *rawFlag) Type() string { return r.kind }
