package gauge

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// Command is the bench as a command line: args are its flags, self is this program as
// it can be started again with them, and binary the proxy that is measured, "" for none
// unless -unbroken names one.
func Command(ctx context.Context, args []string, self []string, binary string, out, log io.Writer) error {
	if len(args) == 3 && args[0] == reverseArg {
		return reverse(args[1], args[2])
	}
	f := flag.NewFlagSet("bench", flag.ContinueOnError)
	f.SetOutput(log)
	f.StringVar(&binary, "unbroken", binary, "the unbroken binary; empty: it takes no part")
	scenarios := f.String("scenarios", "flood,paced1000,paced250,idle5000,json", "which to run, in order; linear is six of them")
	names := f.String("peers", "direct,nginx,haproxy,reverse,unbroken-redis,unbroken-memory", "who takes part")
	rounds := f.Int("rounds", 5, "measurements of each peer in each scenario")
	settle := f.Duration("settle", 2*time.Second, "how long a load flows before it is measured")
	window := f.Duration("window", 5*time.Second, "how long it is measured")
	file := f.String("json", "", "file for the samples")
	page := f.String("html", "", "file for the report")
	baseline := f.String("baseline", "", "file of ratios to compare with; a regression of more than 15 % is an error")
	write := f.Bool("write-baseline", false, "write that file instead")
	costs := f.Bool("redis", false, "measure instead what checkpoints cost a Redis")
	var others []Peer
	provider := f.String("provider", "127.0.0.1:0", "where the simulated provider listens, which the peers that others start must ask")
	f.Func("peer", "a proxy that runs already, NAME=http://HOST:PORT[,PID] (repeatable); its CPU and memory are those of PID", func(s string) error {
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
		r, err := Redis(ctx, binary, log)
		if err != nil {
			return err
		}
		r.Table(out)
		return save(*file, r)
	}
	c := Config{Provider: *provider, Rounds: *rounds, Settle: *settle, Window: *window, Log: log, Peers: others}
	for _, n := range strings.Split(*scenarios, ",") {
		s, ok := Named(n)
		if !ok {
			return fmt.Errorf("no scenario %q", n)
		}
		c.Scenarios = append(c.Scenarios, s...)
	}
	for _, n := range strings.Split(*names, ",") {
		p, err := known(n, binary, self)
		if err == nil {
			err = p.Missing()
		}
		if err != nil {
			fmt.Fprintf(log, "%s is left out: %v\n", n, err)
			continue
		}
		c.Peers = append(c.Peers, p)
	}
	results, err := Run(ctx, c)
	Table(out, c.Peers, results)
	if len(results) == 0 {
		return err
	}
	err = errors.Join(err, save(*file, results))
	if *page != "" {
		err = errors.Join(err, os.WriteFile(*page, Page(c.Peers, results), 0o644))
	}
	switch {
	case *baseline == "":
	case *write:
		err = errors.Join(err, save(*baseline, Ratios(c.Peers, results)))
	default:
		err = errors.Join(err, Check(*baseline, Ratios(c.Peers, results)))
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

func known(name, binary string, self []string) (Peer, error) {
	switch name {
	case "direct":
		return Direct(), nil
	case "nginx":
		return Nginx(), nil
	case "haproxy":
		return HAProxy(), nil
	case "reverse":
		return Reverse(self[0], append(self[1:len(self):len(self)], reverseArg)...), nil
	case "unbroken-redis", "unbroken-memory":
		if binary == "" {
			return Peer{}, errors.New("no --unbroken")
		}
		store := strings.TrimPrefix(name, "unbroken-")
		return Unbroken(name, binary, store), nil
	}
	return Peer{}, errors.New("nobody knows it")
}

func other(s string) (Peer, error) {
	name, at, ok := strings.Cut(s, "=")
	if !ok {
		return Peer{}, fmt.Errorf("%q is not NAME=http://HOST:PORT[,PID]", s)
	}
	addr, pid, _ := strings.Cut(at, ",")
	addr = strings.TrimSuffix(strings.TrimPrefix(addr, "http://"), "/")
	n := 0
	if pid != "" {
		var err error
		if n, err = strconv.Atoi(pid); err != nil {
			return Peer{}, fmt.Errorf("%q: %w", s, err)
		}
	}
	return Remote(name, addr, n), nil
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
