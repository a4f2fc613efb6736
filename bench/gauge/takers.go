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
)

var knownPeers = []string{directName, "nginx", "haproxy", "reverse", "unbroken-redis", "unbroken-memory"}

func known(name, binary string, self []string) (Peer, error) {
	switch name {
	case directName:
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
