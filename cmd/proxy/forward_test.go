package main

import (
	"bufio"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// forwarder is a forward proxy of every kind, on one port, that leads to one place
// whatever is asked for.
type forwarder struct {
	l  net.Listener
	to string

	mu    sync.Mutex
	asked []string
}

func newForwarder(t *testing.T, to string) *forwarder {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &forwarder{l: l, to: to}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { f.serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return f
}

func (f *forwarder) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, what)
}

// told is what it was asked for.
func (f *forwarder) told() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.asked, "; ")
}

func (f *forwarder) serve(c net.Conn) {
	defer c.Close()
	up, err := net.Dial("tcp", f.to)
	if err != nil {
		return
	}
	defer up.Close()
	in := bufio.NewReader(c)
	if first, err := in.Peek(1); err != nil || first[0] == 5 {
		if f.socks(in, c) != nil {
			return
		}
	} else {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		f.note(fmt.Sprintf("%s %s %s", req.Method, req.RequestURI, req.Header.Get("Proxy-Authorization")))
		if req.Method == http.MethodConnect {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
		} else if req.Write(up) != nil {
			return
		}
	}
	go func() { _, _ = io.Copy(up, in); up.Close() }()
	_, _ = io.Copy(c, up)
}

// socks is the server's side of RFC 1928, with the user and password of RFC 1929.
func (f *forwarder) socks(in *bufio.Reader, c net.Conn) error {
	read := func(n int) []byte { b := make([]byte, n); _, _ = io.ReadFull(in, b); return b }
	read(int(read(2)[1])) // the methods
	_, _ = c.Write([]byte{5, 2})
	user := string(read(int(read(2)[1])))
	password := string(read(int(read(1)[0])))
	_, _ = c.Write([]byte{1, 0})
	host := string(read(int(read(5)[4]))) // a name
	port := read(2)
	f.note(fmt.Sprintf("socks %s:%d %s/%s", host, int(port[0])<<8|int(port[1]), user, password))
	_, err := c.Write([]byte{5, 0, 0, 1, 127, 0, 0, 1, 0, 0})
	return err
}

// Requests reach their upstreams through forward proxies of every kind, as settings or the
// environment say.
func TestForwardProxies(t *testing.T) {
	hello := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello ", r.Host) })
	plain, secure := httptest.NewServer(hello), httptest.NewTLSServer(hello)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, scheme string
		conf         func(proxy string) string
		vars         func(proxy string) []string
		want         string // what the proxy was asked for
	}{
		{"a tunnel", "https", func(p string) string { return "proxy: http://me:pass@" + p }, nil, "CONNECT example.com:443 Basic bWU6cGFzcw=="},
		{"absolute requests", "http", func(p string) string { return "proxy: http://" + p }, nil, "GET http://example.com/x "},
		{"SOCKS5", "https", func(p string) string { return "proxy: socks5://me:pass@" + p }, nil, "socks example.com:443 me/pass"},
		{"SOCKS5 in clear", "http", func(p string) string { return "proxy: socks5://me:pass@" + p }, nil, "socks example.com:80 me/pass"},
		{"that of the environment", "https", nil, func(p string) []string { return []string{"https_proxy=http://" + p} }, "CONNECT example.com:443 "},
		{"settings before the environment", "https", func(p string) string { return "proxy: http://" + p },
			func(string) []string { return []string{"HTTPS_PROXY=http://127.0.0.1:1"} }, "CONNECT example.com:443 "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			to := map[string]*httptest.Server{"http": plain, "https": secure}[tc.scheme]
			f := newForwarder(t, to.Listener.Addr().String())
			text := "ca_file: " + ca + "\nupstreams: {openai: " + tc.scheme + "://example.com}\n"
			if tc.conf != nil {
				text += tc.conf(f.l.Addr().String()) + "\n"
			}
			var vars []string
			if tc.vars != nil {
				vars = tc.vars(f.l.Addr().String())
			}
			base, _ := serving(t, vars, "--config", writtenFile(t, text))
			if got := answer(t, http.DefaultClient, base+"/x"); got != "200 hello example.com" {
				t.Errorf("answered %s", got)
			}
			if got := f.told(); got != tc.want {
				t.Errorf("the proxy was asked for %q, want %q", got, tc.want)
			}
		})
	}
}

// Which proxy leads where, from settings and environment.
func TestForwarding(t *testing.T) {
	for _, tc := range []struct{ name, conf, vars, target, want string }{
		{"nothing", "", "", "https://a.example", ""},
		{"the environment", "", "HTTPS_PROXY=http://p:1", "https://a.example", "http://p:1"},
		{"each scheme its own", "", "HTTPS_PROXY=http://p:1", "http://a.example", ""},
		{"capitals first", "", "HTTPS_PROXY=http://p:1 https_proxy=http://q:1", "https://a.example", "http://p:1"},
		{"not where the environment says", "", "HTTPS_PROXY=http://p:1 NO_PROXY=.example", "https://a.example", ""},
		{"the setting for every scheme", "proxy: http://s:1", "HTTPS_PROXY=http://p:1", "http://a.example", "http://s:1"},
		{"not where the setting says", "proxy: http://s:1\nno_proxy: a.example,10.0.0.0/8", "", "https://b.a.example", ""},
		{"nor in its networks", "proxy: http://s:1\nno_proxy: a.example,10.0.0.0/8", "", "https://10.1.2.3", ""},
		{"the setting with the environment's exceptions", "proxy: http://s:1", "no_proxy=a.example", "https://a.example", ""},
		{"the environment's proxy with the setting's exceptions", "no_proxy: b.example", "HTTPS_PROXY=http://p:1 NO_PROXY=a.example", "https://a.example", "http://p:1"},
		{"off", "proxy: off", "HTTPS_PROXY=http://p:1", "https://a.example", ""},
		{"never to this machine", "proxy: http://s:1", "", "https://127.0.0.1", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			env := nothing()
			env.vars = strings.Fields(tc.vars)
			l := load(env, origin{place: "--config", key: writtenFile(t, tc.conf)}, nil)
			if len(l.problems) > 0 {
				t.Fatal(l.problems)
			}
			to, err := url.Parse(tc.target)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if p, err := l.forwarding()(to); err != nil {
				t.Fatal(err)
			} else if p != nil {
				got = p.String()
			}
			if got != tc.want {
				t.Errorf("through %q, want %q", got, tc.want)
			}
		})
	}
}

// A proxy that cannot be used is told of at the start, wherever it is named, and its
// password never.
func TestForwardProxiesThatMakeNoSense(t *testing.T) {
	for name, tc := range map[string]struct{ conf, vars, want string }{
		"no scheme":          {"proxy: me:hunter2@p:1", "", "proxy: "},
		"an unknown scheme":  {"proxy: ftp://me:hunter2@p:1", "", "must start with"},
		"of the environment": {"", "HTTPS_PROXY=gopher://me:hunter2@p:1", "HTTPS_PROXY: the URL of a proxy must start with"},
		"no network":         {"no_proxy: a.example, 10.0.0.0/99", "", "no_proxy: \"10.0.0.0/99\" is no network: "},
		"two minds":          {"proxy: off\nno_proxy: a", "", "no_proxy: "},
	} {
		env := nothing()
		env.vars = strings.Fields(tc.vars)
		l := load(env, origin{place: "--config", key: writtenFile(t, tc.conf)}, nil)
		if got := l.problems.Error(); len(l.problems) != 1 || !strings.Contains(got, tc.want) || strings.Contains(got, "hunter2") {
			t.Errorf("%s: %q, want one problem with %q", name, got, tc.want)
		}
	}
	env := nothing()
	env.vars = []string{"HTTPS_PROXY=me:hunter2@p:1", "http_proxy=http://me:hunter2@q:1", "NO_PROXY=a"}
	l := load(env, origin{}, nil)
	var b strings.Builder
	l.print(&b)
	if got := b.String(); len(l.problems) > 0 || strings.Contains(got, "hunter2") || !strings.Contains(got, "***@p:1") || !strings.Contains(got, "http_proxy") {
		t.Errorf("%v\n%s", l.problems, got)
	}
}
