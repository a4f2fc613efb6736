package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/unbroken-llm/unbroken/faultinject"
)

// faultsFlags is what the command was told.
type faultsFlags struct {
	listen, script, scenario, target, host, seam string
	lines, variants                              []string
	h2c, list                                    bool
	pace                                         time.Duration
	seed                                         uint64
	logFormat                                    string
}

func newFaults(env environment) *cobra.Command {
	var f faultsFlags
	c := &cobra.Command{
		Use:   "faults",
		Short: "Run a strict provider that breaks its streams on purpose",
		Long: "A provider for trials: it speaks the dialects of OpenAI, Anthropic, Gemini and Bedrock,\n" +
			"refuses what the real ones refuse, continues like a model, and misbehaves as told.\n" +
			"With --target the same faults happen to a real provider's streams.\n\n" +
			"A script is lines of  SELECTOR: DIRECTIVE [; DIRECTIVE]…  where a selector is\n" +
			"attempt N, attempt N-M, attempt N+, attempt * or every stream, optionally with\n" +
			"turn N and model PATTERN. Directives are pass, seam NAME, scenario NAME, pace\n" +
			"DURATION, variant NAME… or a fault:\n\n  " + strings.Join(faultinject.FaultUsage(), "\n  ") +
			"\n\nAT is, for instance, after event 3, inside tool-args 2, at byte 700, at start.\n" +
			"Scenarios: " + strings.Join(faultinject.ScenarioNames(), ", ") +
			"\nSeams: " + strings.Join(faultinject.SeamNames(), ", ") +
			"\nDialects: " + dialectList(),
		Example: "  unbroken faults                                        # a good provider\n" +
			"  unbroken faults -e 'attempt 1: rst after event 3'      # each turn breaks once\n" +
			"  unbroken faults -e 'every stream: cut inside tool-args 3 once' --scenario tool\n" +
			"  unbroken faults --script breaks.fault --target https://api.openai.com",
		Args: noArgs,
	}
	p := c.Flags()
	p.SortFlags = false
	p.StringVar(&f.listen, "listen", "127.0.0.1:8799", "where to listen")
	p.StringVar(&f.script, "script", "", "file of script lines")
	p.StringArrayVarP(&f.lines, "expression", "e", nil, "a script line; repeatable, before those of --script")
	p.StringVar(&f.scenario, "scenario", "auto", "what the model says, unless a request or the script tells")
	p.StringVar(&f.target, "target", "", "URL of a real provider to put the faults on")
	p.StringVar(&f.host, "host", "openai", "which chat server to be")
	p.StringVar(&f.seam, "seam", "", "how the model joins a continuation")
	p.StringArrayVar(&f.variants, "variant", nil, "a variant of the wire format; repeatable")
	p.BoolVar(&f.h2c, "h2c", false, "tell unbroken to use HTTP/2 (both versions are always spoken)")
	p.DurationVar(&f.pace, "pace", 20*time.Millisecond, "time between two events")
	p.Uint64Var(&f.seed, "seed", 0, "of everything that is drawn")
	p.StringVar(&f.logFormat, "log-format", "text", "text or json")
	p.BoolVar(&f.list, "list", false, "print every word there is for scripts, requests and flags, and leave")
	completeFaults(c)
	c.RunE = func(c *cobra.Command, _ []string) error { return f.run(c.Context(), env) }
	return c
}

func (f *faultsFlags) run(ctx context.Context, env environment) error {
	if f.list {
		return listFaults(env.out)
	}
	cfg, err := f.config(env)
	if err != nil {
		return misuse{err}
	}
	srv, err := faultinject.New(cfg)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen on %s: the port is in use; stop what uses it or choose another with --listen", f.listen)
	}
	if err != nil {
		return err
	}
	to := srv.URL()
	if f.h2c {
		to = srv.H2CURL()
	}
	fmt.Fprintf(env.out, "the provider is ready: OPENAI_BASE_URL=%s/v1 ANTHROPIC_BASE_URL=%s GOOGLE_GEMINI_BASE_URL=%s\n", srv.URL(), srv.URL(), srv.URL())
	fmt.Fprintf(env.out, "put unbroken in front: unbroken serve --upstream openai=%s --upstream anthropic=%s --upstream gemini=%s\n", to, to, to)
	return srv.Serve(ctx)
}

// config builds the provider's configuration.
func (f *faultsFlags) config(env environment) (c faultinject.Config, err error) {
	lines := ""
	for _, l := range f.lines {
		lines += l + "\n"
	}
	if f.script != "" {
		b, err := os.ReadFile(f.script)
		if err != nil {
			return c, fmt.Errorf("--script %s cannot be read: %s", f.script, plain(err))
		}
		if _, err := faultinject.ParseScript(b); err != nil { // alone, so that the lines are the file's own
			return c, fmt.Errorf("--script %s: %w", f.script, err)
		}
		lines += string(b)
	}
	if c.Script, err = faultinject.ParseScript([]byte(lines)); err != nil {
		return c, err
	}
	if c.Host, err = faultinject.ParseHost(f.host); err != nil {
		return c, fmt.Errorf("--host: %w", err)
	}
	for _, name := range f.variants {
		if err := c.Variant.Set(name); err != nil {
			return c, fmt.Errorf("--variant: %w", err)
		}
	}
	if f.target != "" {
		if c.Target, err = url.Parse(f.target); err != nil {
			return c, errors.New("--target cannot be parsed: write a URL such as https://api.openai.com")
		}
	}
	if f.pace < 0 {
		return c, errors.New("--pace is negative: use a duration such as 20ms")
	}
	c.Listen, c.Scenario, c.Seam.Name, c.Pace, c.Seed = f.listen, f.scenario, f.seam, f.pace, f.seed
	if f.logFormat != "text" && f.logFormat != "json" {
		return c, fmt.Errorf("--log-format %q is not known: use text or json", f.logFormat)
	}
	c.Logger = logger(f.logFormat, slog.LevelInfo, env.err)
	return c, c.Validate()
}

// listFaults prints what the provider knows, a word and what it does a line.
func listFaults(out io.Writer) error {
	var b strings.Builder
	section := func(title string, lines []string) {
		fmt.Fprintf(&b, "%s\n  %s\n", title, strings.Join(lines, "\n  "))
	}
	section("dialects:", strings.Split(dialectList(), ", "))
	section("scenarios:", faultinject.ScenarioNames())
	section("faults:", faultinject.FaultUsage())
	section("seams:", faultinject.SeamNames())
	section("variants:", faultinject.VariantNames())
	section("hosts, for chat:", faultinject.HostNames())
	section("for instance:", []string{"unbroken faults --scenario tool -e 'attempt 1: rst inside tool-args 2'", "docs/FAULTS.md tells what each does."})
	_, err := io.WriteString(out, b.String())
	return err
}

// dialectList names what the provider speaks.
func dialectList() string {
	var names []string
	for _, d := range faultinject.Dialects() {
		names = append(names, string(d))
	}
	return strings.Join(names, ", ")
}
