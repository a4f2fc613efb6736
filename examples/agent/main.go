package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/unbroken-llm/unbroken/runs"
)

func main() {
	var (
		a       = agent{out: os.Stdout, at: hook(os.Getenv("AGENT_HOOK"))}
		sidecar = flag.String("sidecar", "http://127.0.0.1:8790", "where the sidecar listens")
		admin   = flag.String("admin", "http://127.0.0.1:8791", "its admin listener")
		dialect = flag.String("dialect", "chat", "chat, responses or messages")
		name    = flag.String("model", "gpt-4.1", "the model")
		dir     = flag.String("dir", ".", "where the conversation and the effects are kept")
		key     = os.Getenv("AGENT_KEY")
	)
	flag.StringVar(&a.id, "run", "", "id of the run (required)")
	flag.StringVar(&a.task, "task", "Pay 5, note it, and start the job.", "what is to be done")
	plain := flag.Bool("plain", false, "ask for whole answers, not for streams")
	flag.BoolVar(&a.silent, "silent", false, "do not tell the ledger of attempts")
	flag.Parse()
	var ok bool
	if a.model, ok = newModel(*dialect, *sidecar, key, *name, *plain, a.at); !ok || a.id == "" {
		flag.Usage()
		os.Exit(2)
	}
	a.kept, a.tools = store{*dir}, tools{*dir, a.at}
	a.ledger = &runs.Client{URL: *admin, Header: http.Header{}}
	// The credential of the inferences, so that both are the same caller's.
	a.ledger.Header.Set(a.model.credential(key))
	err := a.run(context.Background())
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
	}
	os.Exit(status(err))
}

// status is the exit status for an end of run.
func status(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errUnknown):
		return 3
	case errors.Is(err, errSucceeded):
		return 4
	}
	return 1
}

// hook returns what tells a test, at url, where the agent is, and waits until it may
// go on. The test may have killed the agent by then, or its sidecar.
func hook(url string) func(string) {
	if url == "" {
		return func(string) {}
	}
	return func(point string) {
		res, err := http.Post(url, "text/plain", strings.NewReader(point))
		if err != nil {
			panic("the test that watches is gone: " + err.Error())
		}
		_ = res.Body.Close()
	}
}
