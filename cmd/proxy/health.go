package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/cobra"
)

// healthWait bounds a question to the admin listener: orchestrators ask often.
const healthWait = 3 * time.Second

func newHealth(env environment) *cobra.Command {
	var ready bool
	c := &cobra.Command{
		Use:   "health",
		Short: "Ask a running proxy whether it is well",
		Long: "Ask the admin listener of a running proxy; the exit status is 0 if it is well. It\n" +
			"reads the same configuration as serve, to know where to ask, and for nothing else:\n" +
			"for images that have no shell and no curl.",
		Example: "  unbroken health\n  unbroken health --ready --admin 127.0.0.1:9001",
		Args:    noArgs,
	}
	conf := addConfigFlags(c)
	c.Flags().BoolVar(&ready, "ready", false, "ask whether it wants work: it does not while it drains")
	c.RunE = func(c *cobra.Command, _ []string) error {
		l := conf.load(env)
		if l.misaddressed() {
			return l.problems
		}
		if len(l.problems) > 0 {
			fmt.Fprintln(env.err, "unbroken: the configuration has problems, which unbroken check tells; the process that is asked goes on without it")
		}
		if l.settings.admin == off {
			return fmt.Errorf("the admin listener is off: nobody can be asked")
		}
		path := "/healthz"
		if ready {
			path = "/readyz"
		}
		return ask(c.Context(), env.out, "http://"+reachable(l.settings.admin, textAddr(l.settings.admin))+path)
	}
	return c
}

// misaddressed reports whether a flag or a variable says where to ask, and cannot be read. Any
// other problem of the configuration is no illness of the process that runs: it refused what was
// changed for the worse, and goes on. A probe that fails for it would end it, and its streams.
func (l *loading) misaddressed() bool {
	return slices.ContainsFunc(l.problems, func(p problem) bool {
		return (p.at.place == "--admin" || p.at.place == envPrefix+"ADMIN") && l.origin("admin").place != p.at.place
	})
}

// ask succeeds if the answer is 200, which it tells.
func ask(ctx context.Context, out io.Writer, url string) error {
	ctx, cancel := context.WithTimeout(ctx, healthWait)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	// Never through a forward proxy: the question is for this machine.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("nobody answers at %s: is unbroken serving there?", url)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(res.Body, 1000)) // the status says enough
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s: %.200q", url, res.Status, bytes.TrimSpace(body))
	}
	_, err = io.WriteString(out, clean(string(body)))
	return err
}

// textAddr is an address that was not resolved.
type textAddr string

func (textAddr) Network() string  { return "tcp" }
func (a textAddr) String() string { return string(a) }
