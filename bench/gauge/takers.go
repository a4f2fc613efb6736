package gauge

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
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
