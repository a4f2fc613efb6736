package proxy

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/upstream"
)

// selfSigned is a certificate for a loopback listener.
func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// A certificate that does not verify was asked for four times, with back-offs between, and
// the error did not say what can be done about it.
func TestAnUntrustedUpstreamIsAskedOnceAndSaysWhatHelps(t *testing.T) {
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{selfSigned(t)}})
	if err != nil {
		t.Fatal(err)
	}
	var dialled atomic.Int64
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			dialled.Add(1)
			_ = c.(*tls.Conn).Handshake()
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); within(t, "the listener ends", served) })
	const help = "ca_file names a private authority"
	s := start(t, nil, func(c *Config) {
		c.Upstreams = []Upstream{{Name: "openai", URL: "https://" + l.Addr().String(), SNI: "localhost"}}
	})
	c := dial(t, s.addr)

	res := c.post("/v1/chat/completions", chatAsk).response()
	if got, _ := allOf(res); res.StatusCode != 502 || res.Header.Get("x-should-retry") != "false" || !strings.Contains(got, help) {
		t.Errorf("a stream: %d %v %s", res.StatusCode, res.Header, got)
	}
	if n := dialled.Load(); n != 1 {
		t.Errorf("dialled %d times", n)
	}
	if got := s.notes.outcome(t); got != "failed:lasting_failure" {
		t.Errorf("outcome %s", got)
	}
	eventually(t, "the log says so", func() bool { return strings.Contains(s.log.String(), help) })

	res = c.say("GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n").response()
	if got, _ := allOf(res); res.StatusCode != 502 || !strings.Contains(got, help) {
		t.Errorf("untouched: %d %s", res.StatusCode, got)
	}
	if n := strings.Count(s.log.String(), help); n != 2 {
		t.Errorf("%d lines of the log say so:\n%s", n, s.log)
	}
}

// What the words of the hint would not mend does not have them.
func TestOnlyAnUnknownAuthorityHintsAtOne(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"signed by a stranger": {x509.UnknownAuthorityError{}, true},
		"of another name":      {x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"other.test"}}, Host: "provider.test"}, false},
		"of yesterday":         {x509.CertificateInvalidError{Reason: x509.Expired}, false},
	} {
		e := &upstream.Error{Target: "t", Op: upstream.OpTLS, Kind: upstream.Untrusted, Safety: upstream.NotSent, Err: &tls.CertificateVerificationError{Err: tc.err}}
		end := endOf(e)
		if end.How != interrupt.Untrusted || !end.NotSent || strings.Contains(end.Detail, "ca_file") != tc.want {
			t.Errorf("a certificate %s: %+v", name, end)
		}
	}
}
