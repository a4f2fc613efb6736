package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/unbroken-llm/unbroken/proxy"
	"github.com/unbroken-llm/unbroken/telemetry"
	"github.com/unbroken-llm/unbroken/upstream"
)

// wired is what serving needs, made from settings. Nothing of it runs yet.
type wired struct {
	proxy proxy.Config // without a Client
	dial  upstream.Config
	cert  *tls.Certificate // of the listener; nil: it speaks no TLS
	trace telemetry.TraceConfig
	log   *slog.Logger
	level *slog.LevelVar // of log
}

// wire reads the files that settings name, and builds.
func (l *loading) wire(logTo io.Writer) *wired {
	s := l.settings
	w := &wired{proxy: s.proxy, dial: s.client, level: &slog.LevelVar{}}
	w.level.Set(s.logLevel)
	w.log = logger(s.logFormat, w.level, logTo)
	w.proxy.Log = w.log
	w.dial.Proxy = l.forwarding()
	w.trace = s.trace
	w.trace.Version, w.trace.Log = shortVersion(), w.log
	w.proxy.AdoptRetriesOnly = !s.adoptIdentical
	if s.scopeKey != "" {
		w.proxy.ScopeKey = []byte(s.scopeKey)
	}
	if s.tlsCert != "" && s.tlsKey != "" {
		cert, err := tls.LoadX509KeyPair(s.tlsCert, s.tlsKey)
		if err != nil {
			l.about("tls_cert", "cannot be used with tls_key: "+err.Error())
		}
		w.cert = &cert
	}
	shared := l.trust(l.origin("ca_file"), s.caFile)
	for _, p := range l.providersOrDefaults() {
		p.TLS = l.providerTLS(p, shared)
		w.proxy.Upstreams = append(w.proxy.Upstreams, p.Upstream)
	}
	for _, r := range s.routes.list {
		w.proxy.Routes = append(w.proxy.Routes, r.Route)
	}
	return w
}

// providersOrDefaults adds the upstreams that exist without being listed, so
// that the common settings reach them too.
func (l *loading) providersOrDefaults() []*provider {
	all := l.settings.upstreams.list
	for _, def := range builtin {
		if !l.settings.upstreams.has(def.Name) {
			all = append(all, &provider{Upstream: def})
		}
	}
	return all
}

// builtin are the upstreams that exist without being listed.
var builtin = []proxy.Upstream{
	{Name: "openai", URL: "https://api.openai.com"},
	{Name: "anthropic", URL: "https://api.anthropic.com"},
	{Name: "gemini", URL: "https://generativelanguage.googleapis.com"},
}

// trust is the certificates of a file. Upstreams get them besides the system's.
func (l *loading) trust(at origin, name string) []byte {
	if name == "" {
		return nil
	}
	pem, err := os.ReadFile(name)
	switch {
	case err != nil:
		l.report(at, fmt.Sprintf("%s cannot be read: %s", name, plain(err)))
	case !x509.NewCertPool().AppendCertsFromPEM(pem):
		l.report(at, name+" holds no PEM certificate")
	}
	return pem
}

// providerTLS is nil if nothing differs from the defaults.
func (l *loading) providerTLS(p *provider, shared []byte) *upstream.TLSOptions {
	var o upstream.TLSOptions
	own := l.trust(p.origin("ca_file"), p.caFile)
	if len(shared)+len(own) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		pool.AppendCertsFromPEM(shared)
		pool.AppendCertsFromPEM(own)
		o.RootCAs = pool
	}
	if p.cert != "" && p.key != "" {
		cert, err := tls.LoadX509KeyPair(p.cert, p.key)
		if err != nil {
			l.report(p.origin("client_cert"), "cannot be used with client_key: "+err.Error())
		}
		o.Certificates = []tls.Certificate{cert}
	}
	if o.RootCAs == nil && o.Certificates == nil {
		return nil
	}
	return &o
}
