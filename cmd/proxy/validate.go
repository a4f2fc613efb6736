package main

import (
	"net"
	"net/netip"
	"net/url"

	"github.com/unbroken-llm/unbroken/proxy"
)

// minKey is the shortest scope key: what can be guessed tells callers nothing
// apart from an attacker's point of view.
const minKey = 16

// validate checks what one setting alone cannot know.
func (l *loading) validate() {
	s := l.settings
	switch {
	case s.tlsCert != "" && s.tlsKey == "":
		l.about("tls_cert", "tls_cert and tls_key go together: set both or none")
	case s.tlsCert == "" && s.tlsKey != "":
		l.about("tls_key", "tls_cert and tls_key go together: set both or none")
	}
	if s.admin != off && s.adminToken == "" && !loopback(s.admin) {
		l.about("admin", "the admin listener would be open to the network: set admin_token, or listen on 127.0.0.1")
	}
	if s.admin == s.listen && port(s.listen) != "0" {
		l.about("admin", "listen and admin are the same address: choose another port for one of them")
	}
	if s.scopeKey != "" && len(s.scopeKey) < minKey {
		l.about("scope_key", "is too short: use at least 16 characters, for instance from openssl rand -hex 32")
	}
	for _, p := range s.upstreams.list {
		if p.URL == "" {
			l.report(p.from, "has no url: write for instance url: https://api.openai.com")
			continue
		}
		if key, err := p.complete(); err != nil {
			l.report(p.origin(key), err.Error())
			continue
		}
		if err := valid(proxy.Upstream{Name: p.Name, URL: "https://localhost"}); err != nil {
			l.report(p.from, err.Error())
		} else if err := valid(p.Upstream); err != nil {
			l.report(p.origin("url"), err.Error())
		}
		switch {
		case p.cert != "" && p.key == "":
			l.report(p.origin("client_cert"), "client_cert and client_key go together: set both or none")
		case p.cert == "" && p.key != "":
			l.report(p.origin("client_key"), "client_cert and client_key go together: set both or none")
		}
	}
	l.validateForward()
	l.validateRoutes()
}

// validateRoutes checks the routes against the upstreams as they will be, and that
// no upstream is this process.
func (l *loading) validateRoutes() {
	s := l.settings
	for _, p := range s.upstreams.list {
		if u, err := url.Parse(p.URL); err == nil && port(s.listen) != "0" && u.Port() == port(s.listen) && loopback(net.JoinHostPort(u.Hostname(), "0")) {
			l.report(p.origin("url"), "is the address that unbroken listens on: requests would go in a loop")
		}
	}
	var c proxy.Config
	for _, p := range s.upstreams.list {
		if p.URL == "" || valid(p.Upstream) != nil {
			return // what routes would say about it is not what is wrong
		}
		c.Upstreams = append(c.Upstreams, p.Upstream)
	}
	for _, r := range s.routes.list {
		c.Routes = append(c.Routes, r.Route)
	}
	for _, p := range c.RouteProblems() {
		l.report(s.routes.list[p.Route].origin(p.Route, p.Key), p.What)
	}
}

// valid says what is wrong with one upstream by itself.
func valid(u proxy.Upstream) error { return proxy.Config{Upstreams: []proxy.Upstream{u}}.Validate() }

// about reports a problem of a key, where its value comes from.
func (l *loading) about(key, what string) { l.report(l.origin(key), what) }

// origin is where the value of a key comes from.
func (l *loading) origin(key string) origin {
	if from, ok := l.from[key]; ok {
		return from
	}
	return origin{key: key}
}

// loopback reports whether only this machine can reach an address.
func loopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

func port(addr string) string {
	_, p, _ := net.SplitHostPort(addr)
	return p
}
