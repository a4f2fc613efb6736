package upstream

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/url"
	"testing"
	"time"
)

// identity is a CA of the test's own and a server certificate by it for provider.test and 127.0.0.1.
type identity struct {
	pool *x509.CertPool
	cert tls.Certificate
}

func newIdentity(t *testing.T) *identity {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{"provider.test"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	id := &identity{pool: x509.NewCertPool(), cert: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}}
	id.pool.AddCert(leaf)
	return id
}

// accept shakes hands, offering protocols by ALPN; nil when the client left.
func (id *identity) accept(w *wire, protocols ...string) *wire {
	return id.acceptConfig(w, &tls.Config{NextProtos: protocols})
}

func (id *identity) acceptConfig(w *wire, cfg *tls.Config) *wire {
	cfg.Certificates = []tls.Certificate{id.cert}
	tc := tls.Server(w.Conn, cfg)
	if tc.Handshake() != nil {
		return nil
	}
	return &wire{t: w.t, Conn: tc, br: bufio.NewReader(tc)}
}

func (id *identity) target(p *peer) *Target {
	return &Target{Name: "test", URL: &url.URL{Scheme: "https", Host: p.ln.Addr().String()}, SNI: "provider.test", TLS: &TLSOptions{RootCAs: id.pool}}
}
