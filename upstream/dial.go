package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"time"

	"golang.org/x/net/proxy"
)

var (
	errProxyConfig = errors.New("the configured proxy address is not valid")
	errProxyScheme = errors.New("proxy scheme must be http, https or socks5")
	errNoH2        = errors.New("provider did not negotiate a protocol we speak")
)

// keepAlive finds dead peers under silent streams within about a minute; an idle deadline is the caller's to keep, by Wake.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 10 * time.Second, Count: 4}

// proxyURL is how the proxy environment knows a target: h2c is http, and goes through a tunnel.
func proxyURL(u *url.URL) *url.URL {
	if u.Scheme == "h2c" {
		return &url.URL{Scheme: "http", Host: u.Host}
	}
	return u
}

func tlsConfig(k hostKey) *tls.Config {
	cfg := &tls.Config{ServerName: k.serverName, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if k.http1 {
		cfg.NextProtos = cfg.NextProtos[1:]
	}
	cfg.ClientSessionCache = tls.NewLRUClientSessionCache(0)
	if k.tls != nil {
		cfg.RootCAs = k.tls.RootCAs
		cfg.Certificates = k.tls.Certificates
		cfg.InsecureSkipVerify = k.tls.Insecure
	}
	return cfg
}

// connect makes a connection: TCP, forward proxy, TLS, and for HTTP/2 its preface.
func (h *host) connect(parent context.Context) (link, *Error) {
	ctx, cancel := context.WithTimeout(parent, h.client.cfg.DialTimeout)
	defer cancel()
	raw, nc, e := h.reach(ctx)
	if e != nil {
		if parent.Err() != nil {
			return nil, ended(parent, e.Op, NotSent)
		}
		if ctx.Err() != nil {
			e.Kind = Timeout
		}
		e.Safety = NotSent
		return nil, e
	}
	spoken := h.key.scheme == "h2c"
	if tc, ok := nc.(*tls.Conn); ok && h.tlsConfig != nil {
		switch tc.ConnectionState().NegotiatedProtocol {
		case "h2":
			spoken = true
		case "", "http/1.1":
		default:
			_ = raw.Close()
			return nil, &Error{Op: OpTLS, Safety: NotSent, Kind: Protocol, Err: errNoH2}
		}
	}
	if spoken {
		return h.addH2(nc, raw)
	}
	h.mu.Lock()
	h.proto = protoH1
	h.mu.Unlock()
	return newConn(h, nc, raw), nil
}

// reach returns the transport to the target, or to the proxy that requests are forwarded by: raw, and nc above it.
func (h *host) reach(ctx context.Context) (raw, nc net.Conn, _ *Error) {
	d := &net.Dialer{KeepAliveConfig: keepAlive}
	var err error
	switch {
	case h.proxy == nil:
		raw, err = d.DialContext(ctx, "tcp", h.key.address)
		nc = raw
	case h.proxy.Scheme == "http" || h.proxy.Scheme == "https":
		raw, err = d.DialContext(ctx, "tcp", address(h.proxy))
		nc = raw
		if err == nil && h.proxy.Scheme == "https" {
			nc, err = handshake(ctx, raw, &tls.Config{ServerName: h.proxy.Hostname(), RootCAs: h.key.tls.roots(), MinVersion: tls.VersionTLS12})
		}
		if err == nil && !h.forward {
			err = h.tunnel(ctx, raw, nc)
		}
	case h.proxy.Scheme == "socks5" || h.proxy.Scheme == "socks5h":
		raw, err = h.socks(ctx, d)
		nc = raw
	default:
		err = errProxyScheme
	}
	if err != nil {
		closeConn(raw)
		e := &Error{Op: OpDial, Kind: kindOf(err), Err: err}
		if h.proxy != nil {
			if e.Err = fmt.Errorf("proxy %s: %w", address(h.proxy), err); e.Kind != Untrusted {
				e.Kind = Proxy
			}
		}
		return nil, nil, e
	}
	if h.tlsConfig != nil {
		nc, err = handshake(ctx, nc, h.tlsConfig)
		if err != nil {
			closeConn(raw)
			k := kindOf(err)
			if k == Broken {
				k = TLS
			}
			return nil, nil, &Error{Op: OpTLS, Kind: k, Err: err}
		}
	}
	return raw, nc, nil
}

func closeConn(c net.Conn) {
	if c != nil {
		_ = c.Close()
	}
}

func handshake(ctx context.Context, nc net.Conn, cfg *tls.Config) (*tls.Conn, error) {
	tc := tls.Client(nc, cfg)
	return tc, tc.HandshakeContext(ctx)
}

// tunnel asks an HTTP proxy to connect to the target.
func (h *host) tunnel(ctx context.Context, raw, nc net.Conn) error {
	unbind := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer unbind()
	req := "CONNECT " + h.key.address + " HTTP/1.1\r\nHost: " + h.key.address + "\r\n"
	if h.proxy.User != nil {
		req += "Proxy-Authorization: " + basicAuth(h) + "\r\n"
	}
	if _, err := nc.Write([]byte(req + "\r\n")); err != nil {
		return err
	}
	// Byte by byte: an HTTP/2 target speaks first, and what is behind the head belongs to it.
	var text []byte
	var b [1]byte
	for len(text) < h.client.cfg.MaxHeaderBytes {
		if _, err := io.ReadFull(nc, b[:]); err != nil {
			return err
		}
		if text = append(text, b[0]); b[0] != '\n' || headEnd(text, 0) == 0 {
			continue
		}
		head, err := parseHead(string(text))
		switch {
		case err != nil:
			return err
		case head.status/100 == 1:
			text = text[:0]
		case head.status/100 != 2:
			return fmt.Errorf("refused the tunnel with status %d", head.status)
		default:
			return nil
		}
	}
	return errHeadSize
}

func (h *host) socks(ctx context.Context, d *net.Dialer) (net.Conn, error) {
	var auth *proxy.Auth
	if u := h.proxy.User; u != nil {
		auth = &proxy.Auth{User: u.Username()}
		auth.Password, _ = u.Password()
	}
	s, err := proxy.SOCKS5("tcp", address(h.proxy), auth, d)
	if err != nil {
		return nil, err
	}
	return s.(proxy.ContextDialer).DialContext(ctx, "tcp", h.key.address)
}
