package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/unbroken-llm/unbroken/bench/gauge"
)

func newBench(env environment) *cobra.Command {
	return &cobra.Command{
		Use:   "bench [flags]",
		Short: "Measure what proxies cost, this one among them",
		Long: "Drive a simulated provider through this proxy and its peers, one after the other, and\n" +
			"print the CPU of each per event and per call, its memory per stream and the latency it\n" +
			"adds; break the provider's streams and print what heals, and how fast; or measure any\n" +
			"OpenAI- or Anthropic-compatible URL. nginx, HAProxy and Redis take part where they are\n" +
			"installed; any other proxy can, with --peer. docs/BENCH.md says what is measured.",
		Example: "  unbroken bench --scenarios flood,json --rounds 3\n" +
			"  unbroken bench --scenarios heal,faultrate --html report.html\n" +
			"  unbroken bench --provider 127.0.0.1:9000 --peer mine=http://127.0.0.1:4000,PID\n" +
			"  unbroken bench --target https://api.openai.com/v1 --key-env OPENAI_API_KEY --model gpt-4.1-mini",
		DisableFlagParsing: true, // they are the bench's own
		ValidArgsFunction:  completeBench,
		RunE: func(c *cobra.Command, args []string) error {
			if slices.ContainsFunc(args, asksForHelp) {
				c.Flags().AddGoFlagSet(gauge.Flags()) // to be shown: they are parsed below
				return c.Help()
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			return gauge.Command(c.Context(), args, []string{self, c.Name()}, self, env.out, env.err)
		},
	}
}

func asksForHelp(arg string) bool {
	return slices.Contains([]string{"-h", "--h", "-help", "--help"}, arg)
}
