package upstream

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

// TestALPN: the provider chooses, and gets what it chose.
func TestALPN(t *testing.T) {
	for _, tc := range []struct {
		name      string
		protocols []string
		http1     bool
		want      string
	}{
		{"HTTP/2 preferred", []string{"h2", "http/1.1"}, false, "HTTP/2.0"},
		{"HTTP/1.1 only", []string{"http/1.1"}, false, "HTTP/1.1"},
		{"no ALPN", nil, false, "HTTP/1.1"},
		{"HTTP/2 not offered", []string{"h2", "http/1.1"}, true, "HTTP/1.1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			id := newIdentity(t)
			p := newPeer(t, func(_ int, w *wire) {
				s := id.accept(w, tc.protocols...)
				if s == nil {
					return
				}
				if s.Conn.(*tls.Conn).ConnectionState().NegotiatedProtocol == "h2" {
					(&http2.Server{}).ServeConn(s.Conn, &http2.ServeConnOpts{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						_, _ = io.WriteString(w, "hello")
					})})
					return
				}
				for req, _ := s.request(); req != nil; req, _ = s.request() {
					s.say(ok5)
				}
			})
			c := newClient(t, Config{})
			to := id.target(p)
			to.HTTP1 = tc.http1
			for i := range 3 {
				res := open(t, c, to, post("{}"))
				if body, err := drain(res); body != "hello" || err != io.EOF || res.Proto != tc.want || res.Reused != (i > 0) {
					t.Errorf("request %d: %q, %v, %s, reused %v", i, body, err, res.Proto, res.Reused)
				}
			}
			if p.accepted() != 1 {
				t.Errorf("%d connections", p.accepted())
			}
		})
	}
}

func TestCertificatesThatAreRefused(t *testing.T) {
	id := newIdentity(t)
	p := newPeer(t, func(_ int, w *wire) { id.accept(w, "http/1.1") })
	stranger, wrongName := id.target(p), id.target(p)
	stranger.TLS = &TLSOptions{RootCAs: x509.NewCertPool()}
	wrongName.SNI = "other.test"
	clear := newPeer(t, func(_ int, w *wire) { w.say("HTTP/1.1 400 Bad Request\r\n\r\n") })
	for name, tc := range map[string]struct {
		to   *Target
		want Kind
	}{"unknown CA": {stranger, Untrusted}, "wrong name": {wrongName, Untrusted}, "no TLS there": {clear.target("https"), TLS}} {
		_, err := newClient(t, Config{}).Open(within(t), tc.to, post("{}"))
		if e := failure(t, err); e.Kind != tc.want || e.Op != OpTLS || e.Safety != NotSent {
			t.Errorf("%s: %v", name, e)
		}
	}
}

func TestClientCertificate(t *testing.T) {
	id := newIdentity(t)
	p := newPeer(t, func(_ int, w *wire) {
		s := id.acceptConfig(w, &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: id.pool})
		if s != nil && len(s.Conn.(*tls.Conn).ConnectionState().PeerCertificates) == 1 {
			s.request()
			s.say(ok5)
			s.gone()
		}
	})
	to := id.target(p)
	to.TLS.Certificates = []tls.Certificate{id.cert}
	if body, err := drain(open(t, newClient(t, Config{}), to, post("{}"))); body != "hello" || err != io.EOF {
		t.Errorf("%q, %v", body, err)
	}
}

// TestTLSCutInsideARecord: TLS can tell such a cut even where the body has no framing. (Between records crypto/tls does not tell a bare FIN
// from close_notify, since too many servers leave it out.)
func TestTLSCutInsideARecord(t *testing.T) {
	id := newIdentity(t)
	p := newPeer(t, func(_ int, w *wire) {
		s := id.accept(w, "http/1.1")
		s.request()
		s.say("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello")
		_, _ = w.Conn.Write([]byte{23, 3, 3, 0, 100, 1, 2, 3})
		w.fin()
		w.gone()
	})
	body, err := drain(open(t, newClient(t, Config{}), id.target(p), post("{}")))
	if e := failure(t, err); body != "hello" || e.Kind != Truncated || e.Safety != Partial {
		t.Errorf("%q, %v", body, e)
	}
}

// TestProxies: every kind of forward proxy, with its credentials, in front of every kind of target (FIELD-REPORTS F17).
func TestProxies(t *testing.T) {
	user := url.UserPassword("user", "p:ss")
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:p:ss"))
	t.Run("forwarded in absolute form", func(t *testing.T) {
		p := newPeer(t, func(_ int, w *wire) {
			for {
				line, err := w.br.ReadString('\n')
				if err != nil {
					return
				}
				rest := ""
				for !strings.HasSuffix(rest, "\r\n\r\n") {
					s, err := w.br.ReadString('\n')
					if err != nil {
						return
					}
					rest += s
				}
				if line != "GET http://provider.test//v1?q HTTP/1.1\r\n" || !strings.Contains(rest, "Proxy-Authorization: "+basic+"\r\n") {
					w.say("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
					continue
				}
				w.say(ok5)
			}
		})
		c := newClient(t, Config{Proxy: through("http", p, user)})
		for range 2 {
			res := open(t, c, &Target{URL: mustURL("http://provider.test")}, &Request{Path: "//v1?q"})
			if body, err := drain(res); body != "hello" || err != io.EOF {
				t.Errorf("%d %q, %v", res.Status, body, err)
			}
		}
		if p.accepted() != 1 {
			t.Errorf("%d connections", p.accepted())
		}
	})
	id := newIdentity(t)
	for name, h2 := range map[string]bool{"tunnel to HTTP/1.1 over TLS": false, "tunnel to h2c": true} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, func(_ int, w *wire) {
				req, _ := http.ReadRequest(w.br)
				if req.Method != "CONNECT" || req.RequestURI != "provider.test:443" && !h2 || req.Header.Get("Proxy-Authorization") != basic {
					w.say("HTTP/1.1 400 Bad Request\r\n\r\n")
					return
				}
				w.say("HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n")
				if h2 {
					(&http2.Server{}).ServeConn(w.Conn, &http2.ServeConnOpts{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						_, _ = io.WriteString(w, "hello")
					})})
					return
				}
				s := id.accept(w, "http/1.1")
				s.request()
				s.say(ok5)
				s.gone()
			})
			to := &Target{URL: mustURL("https://provider.test"), TLS: &TLSOptions{RootCAs: id.pool}}
			if h2 {
				to.URL = mustURL("h2c://provider.test")
			}
			res := open(t, newClient(t, Config{Proxy: through("http", p, user)}), to, post("{}"))
			if body, err := drain(res); body != "hello" || err != io.EOF {
				t.Errorf("%q, %v", body, err)
			}
		})
	}
	t.Run("SOCKS5", func(t *testing.T) {
		p := newPeer(t, func(_ int, w *wire) {
			hello := make([]byte, 3)
			_, _ = io.ReadFull(w.br, hello)
			_, _ = w.Write([]byte{5, 0})
			req := make([]byte, 5+len("provider.test")+2)
			_, _ = io.ReadFull(w.br, req)
			if string(req[5:5+len("provider.test")]) != "provider.test" {
				return
			}
			_, _ = w.Write([]byte{5, 0, 0, 1, 127, 0, 0, 1, 0, 80})
			w.request()
			w.say(ok5)
			w.gone()
		})
		res := open(t, newClient(t, Config{Proxy: through("socks5", p, nil)}), &Target{URL: mustURL("http://provider.test")}, post("{}"))
		if body, err := drain(res); body != "hello" || err != io.EOF {
			t.Errorf("%q, %v", body, err)
		}
	})
	t.Run("refused tunnel", func(t *testing.T) {
		p := newPeer(t, func(_ int, w *wire) {
			_, _ = http.ReadRequest(w.br)
			w.say("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
			w.gone()
		})
		_, err := newClient(t, Config{Proxy: through("http", p, nil)}).Open(within(t), &Target{URL: mustURL("https://provider.test")}, post("{}"))
		if e := failure(t, err); e.Kind != Proxy || e.Op != OpDial || e.Safety != NotSent || !strings.Contains(e.Error(), "407") {
			t.Errorf("got %v", e)
		}
	})
	t.Run("unknown scheme", func(t *testing.T) {
		c := newClient(t, Config{Proxy: func(*url.URL) (*url.URL, error) { return mustURL("gopher://127.0.0.1:1"), nil }})
		_, err := c.Open(within(t), &Target{URL: mustURL("https://provider.test")}, post("{}"))
		if e := failure(t, err); e.Kind != Proxy || !errors.Is(err, errProxyScheme) {
			t.Errorf("got %v", e)
		}
	})
	t.Run("environment", func(t *testing.T) {
		t.Setenv("HTTPS_PROXY", "http://proxy.test:3128")
		t.Setenv("NO_PROXY", "inside.test")
		cfg := Config{}.withDefaults()
		for target, want := range map[string]string{"https://provider.test": "http://proxy.test:3128", "https://inside.test": "", "https://127.0.0.1:1": "", "http://provider.test": ""} {
			u, err := cfg.Proxy(mustURL(target))
			if got := ""; err != nil || u != nil && u.String() != want || u == nil && got != want {
				t.Errorf("%s goes through %v, %v, want %q", target, u, err, want)
			}
		}
	})
}

// TestIPv6 dials a literal address in brackets (FIELD-REPORTS F18).
func TestIPv6(t *testing.T) {
	for in, want := range map[string]string{"https://[::1]": "[::1]:443", "http://[::1]:81": "[::1]:81", "h2c://provider.test": "provider.test:80"} {
		if got := address(mustURL(in)); got != want {
			t.Errorf("%s dials %s, want %s", in, got, want)
		}
	}
}

// TestTLSOptionsAreEqualByWhatTheyHold: files that were read again are no reason to connect anew.
func TestTLSOptionsAreEqualByWhatTheyHold(t *testing.T) {
	a, b := newIdentity(t), newIdentity(t)
	pool := func(of *identity) *x509.CertPool { return of.pool.Clone() }
	one := &TLSOptions{RootCAs: pool(a), Certificates: []tls.Certificate{a.cert}}
	for name, tc := range map[string]struct {
		other *TLSOptions
		want  bool
	}{
		"read again":        {&TLSOptions{RootCAs: pool(a), Certificates: []tls.Certificate{a.cert}}, true},
		"other authorities": {&TLSOptions{RootCAs: pool(b), Certificates: []tls.Certificate{a.cert}}, false},
		"another client":    {&TLSOptions{RootCAs: pool(a), Certificates: []tls.Certificate{b.cert}}, false},
		"no client":         {&TLSOptions{RootCAs: pool(a)}, false},
		"no check":          {&TLSOptions{RootCAs: pool(a), Certificates: []tls.Certificate{a.cert}, Insecure: true}, false},
		"defaults":          {nil, false},
	} {
		if one.Equal(tc.other) != tc.want || tc.other.Equal(one) != tc.want {
			t.Errorf("%s: equal is not %v", name, tc.want)
		}
	}
	if none := (*TLSOptions)(nil); !none.Equal(nil) {
		t.Error("the defaults differ from themselves")
	}
}

// TestProxyOverTLSIsTrustedAsItsTargetIs: who runs an authority of their own has its certificates on the proxy, too.
func TestProxyOverTLSIsTrustedAsItsTargetIs(t *testing.T) {
	id := newIdentity(t)
	for name, tc := range map[string]struct {
		trust *TLSOptions
		ok    bool
	}{"its authority": {&TLSOptions{RootCAs: id.pool}, true}, "the system's": {nil, false}} {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t, func(_ int, w *wire) {
				if s := id.accept(w, "http/1.1"); s != nil {
					s.request()
					s.say(ok5)
					s.gone()
				}
			})
			res, err := newClient(t, Config{Proxy: through("https", p, nil)}).Open(within(t), &Target{URL: mustURL("http://other.test"), TLS: tc.trust}, post("{}"))
			if !tc.ok {
				if e := failure(t, err); e.Kind != Untrusted || e.Op != OpDial {
					t.Errorf("got %v", e)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if body, err := drain(res); body != "hello" || err != io.EOF {
				t.Errorf("%q, %v", body, err)
			}
		})
	}
}
