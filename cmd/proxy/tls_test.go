package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An upstream that asks for a client certificate is shown one.
func TestClientCertificate(t *testing.T) {
	dir := t.TempDir()
	if err := writeCertificate(dir); err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(filepath.Join(dir, "cert.pem"))
	if err != nil {
		t.Fatal(err)
	}
	known := x509.NewCertPool()
	known.AppendCertsFromPEM(pem)
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, len(r.TLS.PeerCertificates), " certificate")
	}))
	up.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: known}
	up.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0) // it is to refuse one
	up.StartTLS()
	t.Cleanup(up.Close)
	text := "upstreams:\n  shows: {url: URL, ca_file: DIR/cert.pem, client_cert: DIR/cert.pem, client_key: DIR/key.pem}\n  hides: {url: URL, ca_file: DIR/cert.pem}\n"
	base, _ := serving(t, nil, "--config", writtenFile(t, strings.NewReplacer("URL", up.URL, "DIR", dir).Replace(text)))
	if got := answer(t, http.DefaultClient, base+"/u/shows/x"); got != "200 1 certificate" {
		t.Errorf("answered %s", got)
	}
	if got := answer(t, http.DefaultClient, base+"/u/hides/x"); !strings.HasPrefix(got, "502") || !strings.Contains(got, "certificate") {
		t.Errorf("without one it answers %s", got)
	}
}

// A certificate that is renewed counts for new connections; those that there are go on.
func TestListenerCertificateIsRenewed(t *testing.T) {
	dir, next := t.TempDir(), t.TempDir()
	for _, d := range []string{dir, next} {
		if err := writeCertificate(d); err != nil {
			t.Fatal(err)
		}
	}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") }))
	t.Cleanup(up.Close)
	base, said := serving(t, nil, "--tls-cert", filepath.Join(dir, "cert.pem"), "--tls-key", filepath.Join(dir, "key.pem"), "--upstream", "openai="+up.URL)
	trusting := func(d string) *http.Client {
		pem, err := os.ReadFile(filepath.Join(d, "cert.pem"))
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
		t.Cleanup(tr.CloseIdleConnections)
		return &http.Client{Transport: tr}
	}
	old, renewed := trusting(dir), trusting(next)
	if got := answer(t, old, base+"/x"); got != "200 hello" {
		t.Fatal(got)
	}
	for _, name := range []string{"key.pem", "cert.pem"} { // one after the other, as tools do
		if err := os.Rename(filepath.Join(next, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "a new connection gets the new certificate", func() bool {
		res, err := renewed.Get(base + "/x")
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == 200
	})
	if got := answer(t, old, base+"/x"); got != "200 hello" {
		t.Errorf("the connection that there was: %s", got)
	}
	if text, _ := said.far(); strings.Contains(text, "level=ERROR") {
		t.Errorf("the pair was read while it was no pair:\n%s", text)
	}
}
