package main

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"strings"

	"golang.org/x/net/http/httpproxy"

	"github.com/unbroken-llm/unbroken/upstream"
)

// forwardProxy is the URL of a forward proxy, or off.
type forwardProxy struct{ p *string }

func (v forwardProxy) set(text string) error {
	if text != "" && text != off {
		if err := forwardURL(text); err != nil {
			return err
		}
	}
	*v.p = text
	return nil
}

// String shows no password.
func (v forwardProxy) String() string { return urlShown(*v.p) }

func (forwardProxy) kind() string { return "URL" }

// urlShown is a URL without its password and its query. Proxies of the environment may lack a scheme.
func urlShown(text string) string {
	if strings.Contains(text, "://") {
		return withoutPassword(text)
	}
	return strings.TrimPrefix(withoutPassword("http://"+text), "http://")
}

// forwardURL says what is wrong with the URL of a forward proxy, and quotes none of it:
// it may hold a password.
func forwardURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "":
		return errors.New("is no URL of a proxy: write for instance http://proxy.internal:3128")
	case u.Scheme != "http" && u.Scheme != "https" && u.Scheme != "socks5" && u.Scheme != "socks5h":
		return errors.New("the URL of a proxy must start with http://, https://, socks5:// or socks5h://")
	}
	return nil
}

// The variables that name forward proxies, by the convention of curl and others: those in
// capitals count first.
var (
	proxyOfHTTPS = []string{"HTTPS_PROXY", "https_proxy"}
	proxyOfHTTP  = []string{"HTTP_PROXY", "http_proxy"}
	proxyOfNone  = []string{"NO_PROXY", "no_proxy"}
)

// variable is the first of some variables that is set.
func (l *loading) variable(names []string) (name, text string) {
	for _, name := range names {
		if text, _ := l.env.lookup(name); text != "" {
			return name, text
		}
	}
	return "", ""
}

// forwarding says which forward proxy leads to a target: the one that is configured, else
// those of the environment. None leads to this machine itself.
func (l *loading) forwarding() func(*url.URL) (*url.URL, error) {
	s := l.settings
	if s.forward == off {
		return upstream.NoProxy
	}
	c := httpproxy.Config{HTTPProxy: s.forward, HTTPSProxy: s.forward, NoProxy: s.noForward}
	if s.forward == "" {
		_, c.HTTPProxy = l.variable(proxyOfHTTP)
		_, c.HTTPSProxy = l.variable(proxyOfHTTPS)
	}
	if s.noForward == "" {
		_, c.NoProxy = l.variable(proxyOfNone)
	}
	return c.ProxyFunc()
}

// validateForward checks what is not configured but found. A proxy of the environment
// may be spelled without a scheme.
func (l *loading) validateForward() {
	s := l.settings
	if s.noForward != "" && s.forward == off {
		l.about("no_proxy", "says where the proxy is not used, but proxy is off: remove one of them")
	}
	for where := range strings.SplitSeq(s.noForward, ",") {
		where = strings.TrimSpace(where)
		if _, err := netip.ParsePrefix(where); err != nil && strings.Contains(where, "/") {
			l.about("no_proxy", fmt.Sprintf("%q is no network: write for instance 10.0.0.0/8", where))
		}
	}
	if s.forward != "" {
		return
	}
	for _, names := range [][]string{proxyOfHTTPS, proxyOfHTTP} {
		name, text := l.variable(names)
		if !strings.Contains(text, "://") {
			text = "http://" + text
		}
		if err := forwardURL(text); name != "" && err != nil {
			l.report(origin{place: name}, err.Error()+"; or set "+envPrefix+"PROXY=off to ignore it")
		}
	}
}

// printForwards writes the proxies of the environment that count, and where they are not used,
// for people: one line per variable.
func (l *loading) printForwards(to io.Writer) {
	s := l.settings
	var all [][]string
	if s.forward == "" {
		all = append(all, proxyOfHTTPS, proxyOfHTTP)
	}
	if s.forward != off && s.noForward == "" {
		all = append(all, proxyOfNone)
	}
	for _, names := range all {
		if name, text := l.variable(names); name != "" {
			row(to, map[bool]string{true: "no_proxy", false: "proxy"}[names[0] == proxyOfNone[0]], urlShown(text), origin{place: name})
		}
	}
}
