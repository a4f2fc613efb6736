package main

import (
	"net"
	"net/netip"

	"github.com/unbroken-llm/unbroken/proxy"
)

// minKey is the shortest scope key: what can be guessed tells callers nothing
// apart from an attacker's point of view.
const minKey = 16

// validate checks what one setting alone cannot know.
func (l *loading) validate() {
	s := l.settings
	if (s.tlsCert == "") != (s.tlsKey == "") {
		l.about("tls_cert", "tls_cert and tls_key go together: set both or none")
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
		at := p.from
		if p.URL == "" {
			l.report(at, "has no url")
			continue
		}
		if err := p.complete(); err != nil {
			l.report(at, err.Error())
			continue
		}
		if err := (proxy.Config{Upstreams: []proxy.Upstream{p.Upstream}}).Validate(); err != nil {
			l.report(at, err.Error())
		}
		if (p.cert == "") != (p.key == "") {
			l.report(at, "client_cert and client_key go together: set both or none")
		}
	}
}

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
