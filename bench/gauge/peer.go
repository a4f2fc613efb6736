package gauge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/unbroken-llm/unbroken/bench/mains"
)

// Peer is something between the load and the provider.
type Peer struct {
	Name string
	// Start starts it in front of a provider, with dir for its files.
	Start func(dir, provider string) (*running, error)
	// With is the peer with more flags; nil: it takes none. Only Unbroken does, and only
	// Unbroken heals.
	With func(flags ...string) Peer
	// Needs is a program that must be installed; empty: none.
	Needs string
	at    string // where it listens already; empty: it is started
}

// running is a peer that runs.
type running struct {
	addr string
	// proc has the books; nil: nobody's.
	proc *process
	// loaded is called when the load flows; nil: it makes no difference.
	loaded func()
	also   []func() // ends what runs beside it
}

// stop ends it.
func (r *running) stop() {
	r.proc.stop()
	for _, f := range slices.Backward(r.also) {
		f()
	}
}

// begin starts a peer and waits until it listens.
func (p Peer) begin(dir, provider string) (*running, error) {
	r, err := p.Start(dir, provider)
	if err != nil {
		return nil, err
	}
	if err := until(r.addr, r.proc); err != nil {
		r.stop()
		return nil, err
	}
	return r, nil
}

// alone is a peer that is one process.
func alone(addr string, p *process, err error) (*running, error) {
	if err != nil {
		return nil, err
	}
	return &running{addr: addr, proc: p}, nil
}

// Missing says why the peer cannot take part, nil if it can.
func (p Peer) Missing() error {
	if p.Needs == "" {
		return nil
	}
	if _, err := exec.LookPath(p.Needs); err != nil {
		return fmt.Errorf("%s is not installed", p.Needs)
	}
	return nil
}

// directName is the peer that is none.
const directName = "direct"

// Direct is nothing between: what the provider and the load themselves need.
func Direct() Peer {
	return Peer{Name: directName, Start: func(_, provider string) (*running, error) { return &running{addr: provider}, nil }}
}

// Remote is a proxy that somebody else started, whose process is pid; 0: unknown, so
// that only latencies are measured.
func Remote(name, addr string, pid int) Peer {
	return Peer{Name: name, at: addr, Start: func(_, _ string) (*running, error) {
		r := &running{addr: addr}
		if pid > 0 {
			r.proc = &process{pid: pid}
		}
		return r, nil
	}}
}

const nginxConf = `
%[5]sdaemon off; pid %[1]s/nginx.pid; error_log %[1]s/error.log; worker_processes auto; worker_rlimit_nofile %[4]d;
events { worker_connections 20000; }
http {
  access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  upstream provider { server %[2]s; keepalive 8000; }
  server {
    listen %[3]s backlog=8192; keepalive_requests 1000000; client_max_body_size 0;
    location / { proxy_pass http://provider; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; proxy_read_timeout 600s; }
  }
}`

// Nginx with buffering off.
func Nginx() Peer {
	return Peer{Name: "nginx", Needs: "nginx", Start: func(dir, provider string) (*running, error) {
		addr := freeAddr()
		conf, user := filepath.Join(dir, "nginx.conf"), ""
		if os.Geteuid() == 0 {
			user = "user root; " // or its workers could not write large bodies to dir
		}
		if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, dir, provider, addr, 2*mostStreams()+500, user), 0o600); err != nil {
			return nil, err
		}
		p, err := start("nginx", "-p", dir, "-c", conf, "-e", filepath.Join(dir, "error.log"))
		return alone(addr, p, err)
	}}
}

const haproxyConf = `
global
  maxconn %[3]d
defaults
  mode http
  timeout connect 5s
  timeout client 600s
  timeout server 600s
  option http-keep-alive
  option http-no-delay
frontend front
  bind %[2]s backlog 8192
  default_backend provider
backend provider
  http-reuse safe
  server one %[1]s
`

// HAProxy in its HTTP mode.
func HAProxy() Peer {
	return Peer{Name: "haproxy", Needs: "haproxy", Start: func(dir, provider string) (*running, error) {
		addr := freeAddr()
		conf := filepath.Join(dir, "haproxy.cfg")
		if err := os.WriteFile(conf, fmt.Appendf(nil, haproxyConf, provider, addr, min(12000, mostStreams()+200)), 0o600); err != nil {
			return nil, err
		}
		p, err := start("haproxy", "-db", "-f", conf)
		return alone(addr, p, err)
	}}
}

// Unbroken from a binary, with a store as serve takes it; "redis" starts a Redis of
// its own, whose CPU is not the proxy's.
func Unbroken(name, binary, store string, flags ...string) Peer {
	return unbroken(name, binary, "http", store, "", flags...)
}

// UnbrokenH2 speaks HTTP/2 in clear to the provider.
func UnbrokenH2(name, binary, store string, flags ...string) Peer {
	return unbroken(name, binary, "h2c", store, "", flags...)
}

// unbroken is Unbroken whose Redis fares so when the load flows; "": nobody meddles with it.
func unbroken(name, binary, scheme, store string, state StoreState, flags ...string) Peer {
	p := Peer{Name: name}
	if store == "redis" {
		p.Needs = "redis-server"
	}
	p.With = func(more ...string) Peer {
		return unbroken(name, binary, scheme, store, state, append(flags[:len(flags):len(flags)], more...)...)
	}
	p.Start = func(dir, provider string) (_ *running, err error) {
		r := &running{addr: freeAddr()}
		defer func() {
			if err != nil {
				r.stop()
			}
		}()
		url := store
		if store == "redis" {
			at, stop, err := startRedis(dir)
			if err != nil {
				return nil, err
			}
			r.also = append(r.also, stop)
			if state != "" {
				s, err := mains.New(at)
				if err != nil {
					return nil, err
				}
				r.also = append(r.also, s.Close)
				r.loaded, at = func() { state.on(s) }, s.Addr()
			}
			url = "redis://" + at
		}
		r.proc, err = start(binary, append([]string{"serve", "--listen", r.addr, "--admin", "off", "--store", url, "--log-level", "error",
			"--upstream", "openai=" + scheme + "://" + provider, "--upstream", "anthropic=" + scheme + "://" + provider}, flags...)...)
		return r, err
	}
	return p
}

// startRedis starts a Redis that keeps nothing, and returns where it listens.
func startRedis(dir string) (addr string, stop func(), err error) {
	addr = freeAddr()
	_, port, _ := net.SplitHostPort(addr)
	p, err := start("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir)
	if err != nil {
		return "", nil, err
	}
	if err := until(addr, p); err != nil {
		p.stop()
		return "", nil, err
	}
	return addr, p.stop, nil
}

// ours is a peer that is this program itself, as it is started again by self with arg.
func ours(name string, self []string, arg string) Peer {
	return Peer{Name: name, Start: func(_, provider string) (*running, error) {
		addr := freeAddr()
		p, err := start(self[0], append(self[1:len(self):len(self)], arg, addr, provider)...)
		return alone(addr, p, err)
	}}
}

// freeAddr returns an address of loopback that nobody uses now.
func freeAddr() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "127.0.0.1:0"
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// until waits until somebody listens at addr, or the process has ended.
func until(addr string, p *process) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		c, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return c.Close()
		}
		var ended <-chan struct{}
		if p != nil {
			ended = p.done
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("nobody listens at %s: %w", addr, err)
		case <-ended:
			return errors.New("it ended at once: " + p.out.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
