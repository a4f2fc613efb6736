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
	// demoRest is for reading: how long the view stays between two turns.
	demoRest = 2 * time.Second
	// demoLimit ends a demo that hangs, which would be a failure of ours.
	demoLimit = time.Minute
)

func newDemo(env environment) *cobra.Command {
	var fast, plain bool
	c := &cobra.Command{
		Use:   "demo",
		Short: "See streams break and heal; no key, no network",
		Long: "Run a simulated provider, the proxy and a client in this process. Each turn is cut\n" +
			"in the middle, once without the proxy and once through it. On a terminal of 80 by 24\n" +
			"or more both are shown side by side as they happen; elsewhere, with NO_COLOR and with\n" +
			"TERM=dumb they are plain lines. The exit status is 1 unless every turn arrives whole\n" +
			"through the proxy.",
		Example: "  unbroken demo\n  unbroken demo --fast | tail -5\n  unbroken demo --plain",
		Args:    noArgs,
	}
	c.Flags().BoolVar(&fast, "fast", false, "do not wait between tokens")
	c.Flags().BoolVar(&plain, "plain", false, "plain lines on a terminal too")
	c.RunE = func(c *cobra.Command, _ []string) error {
		to := newDisplay(env, plain)
		if fast {
			return demo(c.Context(), to, fastPace, scenes)
		}
		if v, ok := to.(*view); ok {
			v.rest = demoRest
		}
		return demo(c.Context(), to, demoPace, scenes)
	}
	return c
}

// demo plays every scene and compares.
func demo(ctx context.Context, to display, pace time.Duration, scenes []scene) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, demoLimit, errors.New("the demo takes too long"))
	defer cancel()
	st, err := newStage(pace)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.close()) }()
	var results []*result
	defer func() { to.end(results) }()
	failed := 0
	for i, sc := range scenes {
		to.begin(i+1, len(scenes), sc)
		r, err := sc.play(ctx, st, to)
		if err != nil {
			return err
		}
		if !r.healed() {
			failed++
		}
		results = append(results, r)
		if err := to.pause(ctx); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d turns did not heal", failed, len(scenes))
	}
	return nil
}
