package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
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
		guessed := l.address()
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
		err := ask(c.Context(), env.out, "http://"+reachable(l.settings.admin, textAddr(l.settings.admin))+path)
		if guessed {
			err = l.doubt(err)
		}
		return err
	}
	return c
}

// adminKey finds the lines of a file that say where the admin listener is. What is not indented
// is part of no other value.
var adminKey = regexp.MustCompile(`(?m)^["']?admin["']? *:.*$`)

// address finds where to ask in a file that cannot be read as a whole, if nothing outranks it: the
// line that says it can be read alone. guessed: no line says it, so that it is the default, as for a
// file that is not there.
func (l *loading) address() (guessed bool) {
	if l.unread == nil || l.origin(keyAdmin).place != "" {
		return false
	}
	lines := adminKey.FindAllIndex(l.text, -1)
	if len(lines) == 0 {
		return true
	}
	at := origin{fmt.Sprintf("%s:%d", l.name, 1+bytes.Count(l.text[:lines[0][0]], []byte("\n"))), keyAdmin}
	e, bad := keysOf(l.name, l.text[lines[0][0]:lines[0][1]])
	if len(lines) > 1 || bad != nil || len(e) != 1 || e[0].kind != "scalar" || e[0].text == "" {
		l.report(at, "does not say where to ask: mend the file, or give --admin")
		return false
	}
	l.set(l.field(keyAdmin), e[0].text, at)
	return false
}

// doubt says of a failure that the address was a guess, and why.
func (l *loading) doubt(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w\nthat is the default address; the file that may say another is of no use: %w", err, l.unread)
}

// misaddressed reports whether something says where to ask, and cannot be read; the file, if
// nothing outranks it. Any other problem of the configuration is no illness of the process that
// runs: it refused what was changed for the worse, and goes on. A probe that fails for it would
// end it, and its streams.
func (l *loading) misaddressed() bool {
	return slices.ContainsFunc(l.problems, func(p problem) bool {
		from := l.origin(keyAdmin).place
		if p.at.place == "--admin" || p.at.place == envPrefix+"ADMIN" {
			return from != p.at.place
		}
		return from == "" && p.at.key == keyAdmin && p.at.place != ""
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
