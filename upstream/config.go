package upstream

import (
	"errors"
	"net/url"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// Config configures a Client. The zero value of each field means the default named beside it.
type Config struct {
	DialTimeout time.Duration // 10 s: resolving, connecting, the forward proxy and the TLS handshake together

	// IdleConnTimeout (50 s) bounds how long an unused connection is kept. It is shorter than the idle timeouts of providers and
	// their load balancers (60 s and more), so that we close first and seldom meet a connection they are just closing
	// (FIELD-REPORTS F15). A shorter Keep-Alive: timeout=n of the provider wins.
	IdleConnTimeout time.Duration
	MaxIdlePerHost  int // 256 unused HTTP/1.1 connections per target; the oldest are closed first

	// StreamsPerConn (32) bounds the streams that share an HTTP/2 connection, however many more the provider permits: whatever ends
	// a connection ends all of them. When one dies under several, those that share are half as many from then on, and one more
	// each time as many have come to their end.
	StreamsPerConn int

	MaxHeaderBytes int // 64 KiB: a response head, 1xx heads included
	ReadBuffer     int // 4 KiB per HTTP/1.1 stream; heads may grow it to MaxHeaderBytes

	PingInterval time.Duration // 30 s without a frame on an HTTP/2 connection asks for a PING; negative is never
	PingTimeout  time.Duration // 15 s without its answer, or in which a write got no further, fails the connection and its streams

	// Proxy returns the forward proxy for a target's URL, which it leaves as it is, nil for none. The default reads HTTP_PROXY, HTTPS_PROXY and NO_PROXY once,
	// when the Client is made; loopback targets never go through it. NoProxy turns proxies off. Schemes: http, https, socks5.
	Proxy func(*url.URL) (*url.URL, error)
}

// NoProxy is a Config.Proxy that ignores the environment.
func NoProxy(*url.URL) (*url.URL, error) { return nil, nil }

// Validate reports the first value that makes no sense.
func (c Config) Validate() error {
	switch {
	case c.DialTimeout < 0:
		return errors.New("upstream: dial timeout is negative")
	case c.IdleConnTimeout < 0:
		return errors.New("upstream: idle connection timeout is negative")
	case c.MaxIdlePerHost < 0:
		return errors.New("upstream: idle connections per host is negative")
	case c.StreamsPerConn < 0:
		return errors.New("upstream: streams per connection is negative")
	case c.MaxHeaderBytes < 0:
		return errors.New("upstream: response head limit is negative")
	case c.ReadBuffer != 0 && c.ReadBuffer < 512:
		return errors.New("upstream: read buffer is smaller than 512 bytes")
	case c.PingTimeout < 0:
		return errors.New("upstream: ping timeout is negative")
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.DialTimeout == 0 {
		c.DialTimeout = 10 * time.Second
	}
	if c.IdleConnTimeout == 0 {
		c.IdleConnTimeout = 50 * time.Second
	}
	if c.MaxIdlePerHost == 0 {
		c.MaxIdlePerHost = 256
	}
	if c.StreamsPerConn == 0 {
		c.StreamsPerConn = 32
	}
	if c.MaxHeaderBytes == 0 {
		c.MaxHeaderBytes = 64 << 10
	}
	if c.ReadBuffer == 0 {
		c.ReadBuffer = 4 << 10
	}
	if c.PingInterval == 0 {
		c.PingInterval = 30 * time.Second
	}
	if c.PingTimeout == 0 {
		c.PingTimeout = 15 * time.Second
	}
	if c.Proxy == nil {
		c.Proxy = httpproxy.FromEnvironment().ProxyFunc()
	}
	return c
}
