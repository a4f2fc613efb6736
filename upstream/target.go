package upstream

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"slices"
)

// Target is where an attempt goes. It is read, never kept or changed; equal targets share connections.
type Target struct {
	Name string // for error messages

	// URL gives scheme (http, https, h2c) and host. Its path is not used: Request.Path is final. h2c is HTTP/2 in clear with prior
	// knowledge; https negotiates HTTP/2 or HTTP/1.1 by ALPN; http is HTTP/1.1.
	URL *url.URL

	HostOverride string // Host or :authority to send, "" is the URL's
	SNI          string // server name for TLS and its verification, "" is the URL's host
	HTTP1        bool   // never offer HTTP/2
	TLS          *TLSOptions
}

// TLSOptions are shared by pointer: targets with the same pointer share connections.
type TLSOptions struct {
	RootCAs      *x509.CertPool    // of the provider and of a proxy that speaks TLS; nil is the system's, to add a CA start from x509.SystemCertPool
	Certificates []tls.Certificate // client certificates
	Insecure     bool              // skips verification; for tests only
}

func (o *TLSOptions) roots() *x509.CertPool {
	if o == nil {
		return nil
	}
	return o.RootCAs
}

// Equal reports whether two options say the same, nil being the defaults. Keys are told apart by their certificates.
func (o *TLSOptions) Equal(p *TLSOptions) bool {
	if o == nil || p == nil {
		return o == p
	}
	sameChain := func(a, b tls.Certificate) bool { return slices.EqualFunc(a.Certificate, b.Certificate, bytes.Equal) }
	return o.RootCAs.Equal(p.RootCAs) && slices.EqualFunc(o.Certificates, p.Certificates, sameChain) && o.Insecure == p.Insecure
}

var (
	errNoURL  = errors.New("target has no URL")
	errScheme = errors.New("target scheme must be http, https or h2c")
	errHost   = errors.New("target URL has no host")
)

// Validate reports what makes t unusable.
func (t *Target) Validate() error {
	if t == nil || t.URL == nil {
		return errNoURL
	}
	switch t.URL.Scheme {
	case "http", "https", "h2c":
	default:
		return errScheme
	}
	if t.URL.Hostname() == "" {
		return errHost
	}
	return nil
}

// address is what is dialled: host and port, with the scheme's default port.
func (t *Target) address() string { return address(t.URL) }

func address(u *url.URL) string {
	port := "80"
	switch {
	case u.Port() != "":
		return u.Host
	case u.Scheme == "https":
		port = "443"
	case u.Scheme == "socks5", u.Scheme == "socks5h":
		port = "1080"
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// authority is the Host that the provider sees: never the caller's (FIELD-REPORTS F16).
func (t *Target) authority() string {
	if t.HostOverride != "" {
		return t.HostOverride
	}
	return t.URL.Host
}

func (t *Target) serverName() string {
	if t.SNI != "" {
		return t.SNI
	}
	return t.URL.Hostname()
}
