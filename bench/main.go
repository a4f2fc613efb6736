// Command bench measures what Unbroken costs, beside its peers.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/unbroken-llm/unbroken/bench/gauge"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 3 && args[0] == reverseArg {
		return reverse(args[1], args[2])
	}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	binary := f.String("unbroken", "", "the unbroken binary; empty: it takes no part")
	scenarios := f.String("scenarios", "flood,paced1000,paced250,idle5000,json", "which to run, in order")
	names := f.String("peers", "direct,nginx,haproxy,reverse,unbroken-redis,unbroken-memory", "who takes part")
	rounds := f.Int("rounds", 5, "measurements of each peer in each scenario")
	settle := f.Duration("settle", 2*time.Second, "how long a load flows before it is measured")
	window := f.Duration("window", 5*time.Second, "how long it is measured")
	out := f.String("json", "", "file for the samples")
	costs := f.Bool("redis", false, "measure instead what checkpoints cost a Redis")
	var others []gauge.Peer
	f.Func("peer", "another proxy, NAME=HOST:PORT[,PID] (repeatable)", func(s string) error {
		p, err := other(s)
		others = append(others, p)
		return err
	})
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil
		}
		return err
	}
	if *costs {
		r, err := gauge.Redis(ctx, *binary, os.Stderr)
		if err != nil {
			return err
		}
		r.Table(os.Stdout)
		return save(*out, r)
	}
	c := gauge.Config{Rounds: *rounds, Settle: *settle, Window: *window, Log: os.Stderr, Peers: others}
	for _, n := range strings.Split(*scenarios, ",") {
		s, ok := gauge.Named(n)
		if !ok {
			return fmt.Errorf("no scenario %q", n)
		}
		c.Scenarios = append(c.Scenarios, s)
	}
	for _, n := range strings.Split(*names, ",") {
		p, err := known(n, *binary)
		if err == nil {
			err = p.Missing()
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "%s is left out: %v\n", n, err)
			continue
		}
		c.Peers = append(c.Peers, p)
	}
	results, err := gauge.Run(ctx, c)
	gauge.Table(os.Stdout, c.Peers, results)
	if len(results) > 0 {
		err = errors.Join(err, save(*out, results))
	}
	return err
}

// save writes samples to a file, if there is to be one.
func save(name string, samples any) error {
	if name == "" {
		return nil
	}
	b, err := json.MarshalIndent(samples, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, b, 0o644)
}

func known(name, binary string) (gauge.Peer, error) {
	switch name {
	case "direct":
		return gauge.Direct(), nil
	case "nginx":
		return gauge.Nginx(), nil
	case "haproxy":
		return gauge.HAProxy(), nil
	case "reverse":
		self, err := os.Executable()
		return gauge.Reverse(self, reverseArg), err
	case "unbroken-redis", "unbroken-memory":
		if binary == "" {
			return gauge.Peer{}, errors.New("no --unbroken")
		}
		store := strings.TrimPrefix(name, "unbroken-")
		return gauge.Unbroken(name, binary, store), nil
	}
	return gauge.Peer{}, errors.New("nobody knows it")
}

func other(s string) (gauge.Peer, error) {
	name, at, ok := strings.Cut(s, "=")
	if !ok {
		return gauge.Peer{}, fmt.Errorf("%q is not NAME=HOST:PORT[,PID]", s)
	}
	addr, pid, _ := strings.Cut(at, ",")
	n := 0
	if pid != "" {
		var err error
		if n, err = strconv.Atoi(pid); err != nil {
			return gauge.Peer{}, fmt.Errorf("%q: %w", s, err)
		}
	}
	return gauge.Remote(name, addr, n), nil
}

const reverseArg = "reverse-proxy"

// reverse is the standard library's proxy as a process of its own.
func reverse(addr, provider string) error {
	p := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: provider}) },
		FlushInterval: -1,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 10000, MaxIdleConns: 10000},
	}
	return (&http.Server{Addr: addr, Handler: p, ReadHeaderTimeout: 10 * time.Second}).ListenAndServe()
}
