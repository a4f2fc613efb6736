// Command bench measures what Unbroken costs, beside its peers.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/unbroken-llm/unbroken/bench/gauge"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) // or the peers would outlive it
	defer stop()
	self, err := os.Executable()
	if err == nil {
		err = gauge.Command(ctx, os.Args[1:], []string{self}, "", os.Stdout, os.Stderr)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}
