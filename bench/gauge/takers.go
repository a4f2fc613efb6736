package gauge

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
)

var (
	usualPeers = []string{directName, "nginx", "haproxy", "reverse", "fasthttp", "unbroken-redis", "unbroken-memory"}
	// Those that take part when they are named.
	knownPeers = append(usualPeers[:len(usualPeers):len(usualPeers)], "reverse-h2", "unbroken-h2")
)

func known(name, binary string, self []string) (Peer, error) {
	switch name {
	case directName:
		return Direct(), nil
	case "nginx":
		return Nginx(), nil
	case "haproxy":
		return HAProxy(), nil
	case "reverse":
		return ours("ReverseProxy", self, reverseArg), nil
	case "reverse-h2":
		return ours("ReverseProxy-h2", self, reverseH2Arg), nil
	case "fasthttp":
		return ours(name, self, bareArg), nil
	case "unbroken-redis", "unbroken-memory", "unbroken-h2":
		if binary == "" {
			return Peer{}, errors.New("no --unbroken")
		}
		if name == "unbroken-h2" {
			return UnbrokenH2(name, binary, "memory"), nil
		}
		return Unbroken(name, binary, strings.TrimPrefix(name, "unbroken-")), nil
	}
	return Peer{}, errors.New("nobody knows it")
}

// known are the peers that this program starts and that can take part.
func (c *flags) known(self []string, log io.Writer) (all []Peer, err error) {
	for _, n := range strings.Split(c.peers, ",") {
		if n == "" {
			continue
		}
		if !slices.Contains(knownPeers, n) {
			return nil, fmt.Errorf("no peer %q: they are %s", n, strings.Join(knownPeers, ", "))
		}
		p, err := known(n, c.binary, self)
		if err == nil {
			err = p.Missing()
		}
		if err != nil {
			fmt.Fprintf(log, "%s is left out: %v\n", n, err)
			continue
		}
		all = append(all, p)
	}
	return all, nil
}

// ready is an error if peers cannot be told apart, or one of -peer cannot be measured: an hour
// later it would be a line in a table.
func (c *flags) ready(peers []Peer, loads int) error {
	seen := map[string]bool{}
	for _, p := range peers {
		if seen[p.Name] {
			return fmt.Errorf("two peers are named %s: give that of --peer another name", p.Name)
		}
		seen[p.Name] = true
	}
	if len(c.others) == 0 {
		return nil
	}
	if loads == 0 {
		return errors.New("a --peer takes part in loads, and none of these scenarios is one")
	}
	if _, port, err := net.SplitHostPort(c.provider); err != nil || port == "0" {
		return errors.New("a --peer needs --provider HOST:PORT: where the provider is to listen that your proxy asks, as its configuration names it")
	}
	for _, p := range c.others {
		d, err := net.DialTimeout("tcp", p.at, dialLimit)
		if err != nil {
			return fmt.Errorf("--peer %s: nobody listens there: %w", p.Name, err)
		}
		_ = d.Close()
	}
	return nil
}

// dialLimit is how long a proxy that runs may take to accept a connection.
const dialLimit = 5 * time.Second

// other reads a peer of -peer. What can be known to be wrong with it now is not found out
// after everybody else was measured.
func other(s string) (Peer, error) {
	const form = "NAME=http://HOST:PORT[,PID]"
	name, at, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return Peer{}, errors.New("it is not " + form)
	}
	at, pid, measured := strings.Cut(at, ",")
	addr := strings.TrimSuffix(strings.TrimPrefix(at, "http://"), "/")
	if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" || strings.Trim(port, "0123456789") != "" {
		return Peer{}, fmt.Errorf("%q is not http://HOST:PORT, and it is %s", at, form)
	}
	if !measured {
		return Remote(name, addr, 0), nil
	}
	n, err := strconv.Atoi(pid)
	if err != nil || n < 1 {
		return Peer{}, fmt.Errorf("%q is no PID: it is the number of the proxy's process, as pgrep prints it, or is left out with its comma", pid)
	}
	if err := (&process{pid: n}).readable(); err != nil {
		return Peer{}, err
	}
	return Remote(name, addr, n), nil
}

// Subcommands of this program that are peers, each with an address to listen at and the
// provider's.
const (
	reverseArg   = "reverse-proxy"
	reverseH2Arg = "reverse-proxy-h2"
	bareArg      = "bare-fasthttp"
)

// peerOf is the peer that args start this program as; nil: none.
func peerOf(args []string) func(addr, provider string) error {
	if len(args) != 3 {
		return nil
	}
	return map[string]func(string, string) error{reverseArg: reverse, reverseH2Arg: reverseH2, bareArg: bare}[args[0]]
}

// reverse is the standard library's proxy as a process of its own.
func reverse(addr, provider string) error {
	return forward(addr, provider, &http.Transport{MaxIdleConnsPerHost: 10000, MaxIdleConns: 10000})
}

// reverseH2 speaks HTTP/2 in clear to the provider.
func reverseH2(addr, provider string) error {
	t := &http.Transport{Protocols: new(http.Protocols)}
	t.Protocols.SetUnencryptedHTTP2(true)
	return forward(addr, provider, t)
}

func forward(addr, provider string, t http.RoundTripper) error {
	p := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: provider}) },
		FlushInterval: -1,
		Transport:     t,
	}
	return (&http.Server{Addr: addr, Handler: p, ReadHeaderTimeout: 10 * time.Second}).ListenAndServe()
}

// bare is fasthttp's server before its client, and nothing between them: about what a proxy
// that is made with it costs at least.
func bare(addr, provider string) error {
	c := &fasthttp.HostClient{Addr: provider, MaxConns: 20000, StreamResponseBody: true}
	s := &fasthttp.Server{
		ReduceMemoryUsage: true,
		Handler: func(ctx *fasthttp.RequestCtx) {
			if err := c.Do(&ctx.Request, &ctx.Response); err != nil {
				ctx.Error(err.Error(), fasthttp.StatusBadGateway)
			}
		},
	}
	return s.ListenAndServe(addr)
}
