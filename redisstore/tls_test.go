package redisstore

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// certificate writes a certificate that signs itself, for loopback, and its key.
func certificate(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	tmpl := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &priv.PublicKey, priv)
	must(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(priv)
	must(t, err)
	cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	must(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600))
	return cert, key
}

// With TLS both sides show who they are; a server that nobody vouches for gets
// no password.
func TestTLS(t *testing.T) {
	needs(t, "redis-server")
	dir := t.TempDir()
	cert, key := certificate(t, dir, "server")
	ccert, ckey := certificate(t, dir, "client")
	port := freePort(t)
	srv := startRedis(t, "--tls-port", fmt.Sprint(port), "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ccert)
	at := fmt.Sprintf("rediss://127.0.0.1:%d?", port)
	srv.until("TLS answers", func() bool {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	good := url.Values{"ca": {cert}, "cert": {ccert}, "key": {ckey}}
	s := open(t, at+good.Encode(), lasting)
	h := hold(t, s, "run", me)
	h.say("secret")
	h.sync(t)
	if got := logOf(t, s, "run"); got != "secret" {
		t.Errorf("log %q", got)
	}
	for name, c := range map[string]struct {
		q    url.Values
		says string
	}{
		"nobody vouches for the server": {url.Values{"cert": {ccert}, "key": {ckey}}, "unknown authority"},
		"another server's name":         {url.Values{"ca": {cert}, "cert": {ccert}, "key": {ckey}, "server_name": {"redis.example"}}, "not valid for any names"},
		"we do not show who we are":     {url.Values{"ca": {cert}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, at+c.q.Encode(), brisk)
			until(t, "away, and says why", func() bool { st := s.Stats(); return st.Away && strings.Contains(st.Error, c.says) })
		})
	}
}
