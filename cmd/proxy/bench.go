package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/unbroken-llm/unbroken/bench/gauge"
)

func newBench(env environment) *cobra.Command {
	return &cobra.Command{
		Use:   "bench [flags]",
		Short: "Measure what proxies cost, this one among them",
		Long: "Drive a simulated provider through this proxy and its peers, one after the other, and\n" +
			"print the CPU of each per event and per call, its memory per stream and the latency it\n" +
			"adds. nginx, HAProxy and Redis take part where they are installed; any other proxy that\n" +
			"speaks OpenAI's API can, with --peer. See bench --help for the flags.",
		Example: "  unbroken bench --scenarios flood,json --rounds 3\n" +
			"  unbroken bench --provider 127.0.0.1:9000 --peer mine=http://127.0.0.1:4000,PID --html report.html",
		DisableFlagParsing: true, // they are the bench's own
		ValidArgsFunction:  completeBench,
		RunE: func(c *cobra.Command, args []string) error {
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			return gauge.Command(c.Context(), args, []string{self, c.Name()}, self, env.out, env.err)
		},
	}
}
