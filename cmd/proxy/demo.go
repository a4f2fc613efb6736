package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

const (
	demoPace = 25 * time.Millisecond // between two tokens: about what a model needs
	fastPace = time.Millisecond
	// demoLimit ends a demo that hangs, which would be a failure of ours.
	demoLimit = time.Minute
)

func newDemo(env environment) *cobra.Command {
	var fast bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "See streams break and heal; no key, no network",
		Long: "Run a simulated provider, the proxy and a client in this process. Each turn is cut\n" +
			"in the middle, once without the proxy and once through it. The exit status is 1\n" +
			"unless every turn arrives whole through the proxy.",
		Example: "  unbroken demo\n  unbroken demo --fast | tail -5",
		Args:    noArgs,
	}
	c.Flags().BoolVar(&fast, "fast", false, "do not wait between tokens")
	c.RunE = func(c *cobra.Command, _ []string) error {
		pace := demoPace
		if fast {
			pace = fastPace
		}
		return demo(c.Context(), newScreen(env), pace, scenes)
	}
	return c
}

// demo plays every scene and compares.
func demo(ctx context.Context, to *screen, pace time.Duration, scenes []scene) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, demoLimit, errors.New("the demo takes too long"))
	defer cancel()
	st, err := newStage(pace)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	to.line("A provider breaks its stream in every turn: once with the client connected to it, once")
	to.line("with unbroken in between. The client is the same, and knows nothing of either.")
	failed := 0
	var rows [][3]string
	for i, sc := range scenes {
		to.heading("%d/%d  %s", i+1, len(scenes), sc.title())
		r, err := sc.play(ctx, st, to)
		if err != nil {
			return err
		}
		if !r.healed() {
			failed++
		}
		rows = append(rows, [3]string{sc.title(), r.directly(), r.through()})
	}
	to.heading("%-40s %-26s %s", "", "direct", "through unbroken")
	for _, row := range rows {
		to.line("%-40s %-26s %s", row[0], row[1], row[2])
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d turns did not heal", failed, len(scenes))
	}
	return nil
}
