package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	go obey(cancel)
	env := environment{args: os.Args[1:], vars: os.Environ(), in: os.Stdin, out: os.Stdout, err: os.Stderr}
	os.Exit(run(ctx, env))
}

// obey turns the first signal into the cause of the cancellation, which drains,
// and the second one into the end of the process.
func obey(cancel context.CancelCauseFunc) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	cancel(signalled{<-signals})
	if n, ok := (<-signals).(syscall.Signal); ok {
		os.Exit(128 + int(n))
	}
	os.Exit(exitFailed)
}

// signalled is the cause of a cancellation by a signal.
type signalled struct{ os.Signal }

func (s signalled) Error() string { return "received " + s.String() }

// environment is what a process is given.
type environment struct {
	args []string
	vars []string // NAME=value
	in   io.Reader
	out  io.Writer // what was asked for
	err  io.Writer // logs and errors
}

// lookup finds an environment variable.
func (e environment) lookup(name string) (string, bool) {
	for i := len(e.vars) - 1; i >= 0; i-- { // the last one counts, as in a shell
		if v, ok := strings.CutPrefix(e.vars[i], name+"="); ok {
			return v, true
		}
	}
	return "", false
}

const (
	exitFailed = 1
	exitMisuse = 2
)

// run is the whole program. It returns the exit status, having written one line
// per problem.
func run(ctx context.Context, env environment) int {
	out := &written{w: env.out}
	env.out = out
	root := newRoot(env)
	helpOnWhatExists(root)
	err := root.ExecuteContext(ctx)
	if err == nil && out.err != nil {
		err = fmt.Errorf("write the output: %w", out.err)
	}
	if err == nil {
		return 0
	}
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(env.err, "unbroken: %s\n", clean(strings.TrimRight(line, "\n")))
	}
	if m := (misuse{}); errors.As(err, &m) {
		return exitMisuse
	}
	return exitFailed
}

// misuse is an error in how the command was called.
type misuse struct{ error }

func (m misuse) Unwrap() error { return m.error }

// written remembers that output was lost, for instance on a full disk, since the
// many places that print do not look.
type written struct {
	w   io.Writer
	err error
}

func (w *written) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	if err != nil && w.err == nil {
		w.err = err
	}
	return n, err
}
