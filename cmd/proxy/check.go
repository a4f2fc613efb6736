package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func newCheck(env environment) *cobra.Command {
	var print, example, schema bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Check the configuration and exit",
		Long: "Check what serve would be given: file, environment and flags. Every problem is\n" +
			"one line; the exit status is 1 if there is any.",
		Example: "  unbroken check --config unbroken.yaml\n" +
			"  unbroken check --print                  # every value, and where it comes from\n" +
			"  unbroken check --example > unbroken.yaml\n" +
			"  unbroken check --schema > unbroken.schema.json   # for editors",
		Args: noArgs,
	}
	conf := addConfigFlags(c)
	c.Flags().BoolVar(&print, "print", false, "print the effective settings and where they come from")
	c.Flags().BoolVar(&example, "example", false, "print an annotated file with every default")
	c.Flags().BoolVar(&schema, "schema", false, "print the JSON schema of the file, for editors")
	c.RunE = func(*cobra.Command, []string) error {
		if example {
			writeExample(env.out)
			return nil
		}
		if schema {
			return writeSchema(env.out)
		}
		l := conf.load(env)
		l.wire(io.Discard)
		if print {
			l.print(env.out)
		}
		if len(l.problems) > 0 {
			return l.problems
		}
		if !print {
			fmt.Fprintln(env.out, "the configuration is good")
		}
		return nil
	}
	return c
}

// print writes every effective setting and its origin. Secrets are not shown.
func (l *loading) print(to io.Writer) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	defer w.Flush()
	for i := range l.fields {
		f := &l.fields[i]
		if f.key != keyUpstreams {
			row(w, f.key, shown(f.value.String()), l.origin(f.key))
		}
	}
	l.printForwards(w)
	for _, p := range l.providersOrDefaults() {
		name := keyUpstreams + "." + p.Name
		table := p.fields(l.env.lookup)
		for i := range table {
			if text := table[i].value.String(); text != "" && text != "false" {
				row(w, name+"."+table[i].key, text, p.origin(table[i].key))
			}
		}
		for _, h := range p.Header {
			row(w, name+".headers."+h.Name, redact(h.Value), p.origin("headers."+h.Name))
		}
	}
	for n, j := range l.settings.routes.list {
		j.print(w, n)
	}
}

// print writes route n, key by key.
func (j *journey) print(to io.Writer, n int) {
	say := func(key, text string) {
		if text != "" && text != "false" && text != "0s" && text != "0" {
			row(to, fmt.Sprintf("%s[%d].%s", keyRoutes, n, key), text, j.origin(n, key))
		}
	}
	table := j.fields()
	for i := range table {
		say(table[i].key, table[i].value.String())
	}
	for i, t := range j.Targets {
		at := fmt.Sprintf("targets[%d]", i)
		say(at+".upstream", t.Upstream)
		say(at+".model", t.Model)
		say(at+".for", t.For)
	}
}

// row writes one setting of a table, in one line, whatever its value is.
func row(to io.Writer, key, text string, from origin) {
	fmt.Fprintf(to, "%s\t%s\t%s\n", cleanLine(key), cleanLine(text), cleanLine(from.String()))
}

func shown(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
