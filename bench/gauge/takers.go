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

var knownPeers = []string{directName, "nginx", "haproxy", "reverse", "fasthttp", "unbroken-redis", "unbroken-memory"}

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
	case "fasthttp":
		return ours(name, self, bareArg), nil
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

// Subcommands of this program that are peers, each with an address to listen at and the
// provider's.
const (
	reverseArg = "reverse-proxy"
	bareArg    = "bare-fasthttp"
)

// peerOf is the peer that args start this program as; nil: none.
func peerOf(args []string) func(addr, provider string) error {
	if len(args) != 3 {
		return nil
	}
	return map[string]func(string, string) error{reverseArg: reverse, bareArg: bare}[args[0]]
}

// reverse is the standard library's proxy as a process of its own.
func reverse(addr, provider string) error {
	p := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: provider}) },
		FlushInterval: -1,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 10000, MaxIdleConns: 10000},
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
