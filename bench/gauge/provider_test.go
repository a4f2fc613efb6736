package gauge

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

// full is a listener of a process that has no file left, at first.
type full struct {
	net.Listener
	left atomic.Int32
}

func (l *full) Accept() (net.Conn, error) {
	if l.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Net: "tcp", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

// After ten thousand streams the provider had no file for a moment, accepted nobody any
// more, and every load that followed failed.
func TestProviderThatHadNoFileLeftGoesOn(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &full{Listener: l}
	f.left.Store(3)
	p := provide(f)
	defer p.Close()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write([]byte("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// The same answers over both versions of HTTP, streamed and whole.
func TestProviderSpeaksBothVersions(t *testing.T) {
	p, err := NewProvider("")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	over := map[string]*http.Transport{"HTTP/1.1": {}, "HTTP/2.0": {Protocols: new(http.Protocols)}}
	over["HTTP/2.0"].Protocols.SetUnencryptedHTTP2(true)
	stamp := regexp.MustCompile(stampMark + `\d+`)
	for _, wire := range []Wire{Chat, Messages} {
		for _, stream := range []bool{true, false} {
			got := map[string]string{}
			for version, tr := range over {
				defer tr.CloseIdleConnections()
				body := Shape{Events: 3, Bytes: 5}.on(wire, stream, 10)
				res, err := (&http.Client{Transport: tr}).Post("http://"+p.Addr()+wire.path(), "application/json", bytes.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(res.Body)
				if res.Body.Close(); err != nil || res.Proto != version || res.StatusCode != http.StatusOK {
					t.Fatalf("%s: %s %s, %v", version, res.Proto, res.Status, err)
				}
				got[version] = res.Header.Get("Content-Type") + stamp.ReplaceAllString(string(b), "@")
			}
			if got["HTTP/1.1"] != got["HTTP/2.0"] || !strings.Contains(got["HTTP/2.0"], "wwwww") {
				t.Errorf("%s, stream %v:\n%q\n%q", wire, stream, got["HTTP/1.1"], got["HTTP/2.0"])
			}
		}
	}
}
