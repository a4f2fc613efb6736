package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "drill:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, progress io.Writer) error {
	c := fullSize
	f, out := flags(&c)
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%q is left over: what it takes are flags", f.Arg(0))
	}
	if c.Agents < 1 || c.Away <= 0 || c.Turn <= c.Think {
		return fmt.Errorf("-agents and -away are to be above 0, and -turn above the %v before its first token", c.Think)
	}
	c.Well, c.After = watched*c.Turn/2, watched*c.Turn/2
	if err := os.MkdirAll(*out, 0o755); err != nil { // found out at its end, the drill would be for nothing
		return err
	}
	fmt.Fprintf(progress, "drill: %d agents, away for %v; about %v\n", c.Agents, c.Away, (c.Well + c.Away + c.After).Round(time.Second))
	r, err := drill(ctx, c)
	if err != nil {
		return err
	}
	fmt.Fprint(progress, r.summary())
	if err := r.write(*out); err != nil {
		return err
	}
	fmt.Fprintf(progress, "drill.json, drill.svg and drill.md are in %s\n", *out)
	return nil
}

// watched is how many half turns are watched before the outage, and behind it: all agents are
// in a turn after two.
const watched = 5

// flags are the drill's command line: its size, and where the report goes.
func flags(c *config) (f *flag.FlagSet, out *string) {
	f = flag.NewFlagSet("drill", flag.ContinueOnError)
	out = f.String("out", "bench/results", "directory for drill.json, drill.svg and drill.md")
	f.IntVar(&c.Agents, "agents", c.Agents, "agents, each with one turn at a time")
	f.DurationVar(&c.Turn, "turn", c.Turn, "how long a turn takes when all is well; two and a half of them are watched before the outage, and behind it")
	f.DurationVar(&c.Away, "away", c.Away, "how long the provider is away")
	return f, out
}
