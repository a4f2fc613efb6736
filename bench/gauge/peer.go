package gauge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// Peer is something between the load and the provider.
type Peer struct {
	Name string
	// Start starts it in front of a provider, with dir for its files, and returns
	// where it listens. A nil process has no books: nothing is between.
	Start func(dir, provider string) (addr string, p *process, err error)
	// Needs is a program that must be installed; empty: none.
	Needs string
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

// Direct is nothing between: what the provider and the load themselves need.
func Direct() Peer {
	return Peer{Name: "direct", Start: func(_, provider string) (string, *process, error) { return provider, nil, nil }}
}

// Remote is a proxy that somebody else started, whose process is pid; 0: unknown, so
// that only latencies are measured.
func Remote(name, addr string, pid int) Peer {
	return Peer{Name: name, Start: func(_, _ string) (string, *process, error) {
		if pid == 0 {
			return addr, nil, nil
		}
		return addr, &process{pid: pid}, nil
	}}
}

const nginxConf = `
daemon off; pid %[1]s/nginx.pid; error_log %[1]s/error.log; worker_processes auto; worker_rlimit_nofile 40000;
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
	return Peer{Name: "nginx", Needs: "nginx", Start: func(dir, provider string) (string, *process, error) {
		addr := freeAddr()
		conf := filepath.Join(dir, "nginx.conf")
		if err := os.WriteFile(conf, fmt.Appendf(nil, nginxConf, dir, provider, addr), 0o600); err != nil {
			return "", nil, err
		}
		p, err := start("nginx", "-p", dir, "-c", conf, "-e", filepath.Join(dir, "error.log"))
		return addr, p, err
	}}
}

const haproxyConf = `
global
  maxconn 9000
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
	return Peer{Name: "haproxy", Needs: "haproxy", Start: func(dir, provider string) (string, *process, error) {
		addr := freeAddr()
		conf := filepath.Join(dir, "haproxy.cfg")
		if err := os.WriteFile(conf, fmt.Appendf(nil, haproxyConf, provider, addr), 0o600); err != nil {
			return "", nil, err
		}
		p, err := start("haproxy", "-db", "-f", conf)
		return addr, p, err
	}}
}

// Unbroken from a binary, with a store as serve takes it; "redis" starts a Redis of
// its own, whose CPU is not the proxy's.
func Unbroken(name, binary, store string, args ...string) Peer {
	p := Peer{Name: name}
	if store == "redis" {
		p.Needs = "redis-server"
	}
	p.Start = func(dir, provider string) (string, *process, error) {
		addr, url := freeAddr(), store
		var redis *process
		if store == "redis" {
			at := freeAddr()
			_, port, _ := net.SplitHostPort(at)
			var err error
			redis, err = start("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", dir)
			if err != nil {
				return "", nil, err
			}
			if err := until(at, redis); err != nil {
				redis.stop()
				return "", nil, err
			}
			url = "redis://" + at
		}
		u, err := start(binary, append([]string{"serve", "--listen", addr, "--admin", "off", "--store", url,
			"--upstream", "openai=http://" + provider, "--log-level", "error"}, args...)...)
		if err != nil {
			redis.stop()
			return "", nil, err
		}
		if redis != nil {
			go func() { <-u.done; redis.stop() }()
		}
		return addr, u, nil
	}
	return p
}

// Reverse is the standard library's ReverseProxy, from this program itself, whose
// subcommand that starts it is args.
func Reverse(self string, args ...string) Peer {
	return Peer{Name: "ReverseProxy", Start: func(_, provider string) (string, *process, error) {
		addr := freeAddr()
		p, err := start(self, append(args, addr, provider)...)
		return addr, p, err
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
