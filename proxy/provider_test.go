package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience bounds how long a test waits for what must happen.
const patience = 60 * time.Second

// provider is an upstream of which a test says every byte. Request n is answered
// by script n, or by the last one.
type provider struct {
	t       *testing.T
	l       net.Listener
	scripts []func(*asked)
	arrived chan *asked // every request, as it arrives

	mu    sync.Mutex
	seen  []*asked
	conns int
	wg    sync.WaitGroup
}

// asked is one request to a provider.
type asked struct {
	n    int // from 0
	head string
	path string        // path and query, byte for byte
	req  *http.Request // with a target that net/http can read
	body []byte
	c    net.Conn
	br   *bufio.Reader
	t    *testing.T
	left chan struct{} // closed when the proxy has closed the connection
	stop bool          // the connection is of no more use
}

func newProvider(t *testing.T, scripts ...func(*asked)) *provider {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{t: t, l: l, scripts: scripts, arrived: make(chan *asked, 1000)}
	p.wg.Add(1)
	go p.accept()
	t.Cleanup(func() {
		l.Close()
		p.mu.Lock()
		for _, a := range p.seen {
			a.c.Close()
		}
		p.mu.Unlock()
		p.wg.Wait()
	})
	return p
}

func (p *provider) url() string { return "http://" + p.l.Addr().String() }

func (p *provider) hits() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.seen)
}

func (p *provider) accept() {
	defer p.wg.Done()
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.conns++
		p.mu.Unlock()
		p.wg.Add(1)
		go p.serve(c)
	}
}

func (p *provider) serve(c net.Conn) {
	defer p.wg.Done()
	defer c.Close()
	br := bufio.NewReader(c)
	for {
		head, err := readHead(br)
		if err != nil {
			return
		}
		method, rest, _ := strings.Cut(head, " ")
		path, rest, _ := strings.Cut(rest, " ")
		sane := method + " / " + rest
		req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(sane)))
		if err != nil {
			p.t.Errorf("provider got a bad request: %v\n%s", err, head)
			return
		}
		a := &asked{head: head, path: path, req: req, c: c, br: br, t: p.t, left: make(chan struct{})}
		p.mu.Lock()
		a.n = len(p.seen)
		p.seen = append(p.seen, a)
		p.mu.Unlock()
		script := p.scripts[min(a.n, len(p.scripts)-1)]
		if req.Header.Get("X-Test-Unread") == "" {
			whole, err := http.ReadRequest(bufio.NewReader(io.MultiReader(strings.NewReader(sane), br)))
			if err == nil {
				a.body, err = io.ReadAll(whole.Body)
			}
			if err != nil {
				return
			}
		}
		p.arrived <- a
		script(a)
		if a.stop {
			return
		}
	}
}

// readHead reads a request head byte by byte, so that nothing of the body is
// taken with it.
func readHead(br *bufio.Reader) (string, error) {
	var b strings.Builder
	for {
		line, err := br.ReadString('\n')
		if err != nil {
			return "", err
		}
		b.WriteString(line)
		if line == "\r\n" {
			return b.String(), nil
		}
	}
}

// say writes raw bytes.
func (a *asked) say(s string) {
	if _, err := io.WriteString(a.c, s); err != nil {
		a.stop = true
	}
}

// stream starts a chunked event stream.
func (a *asked) stream(header ...string) {
	a.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n" + lines(header) + "\r\n")
}

func lines(header []string) string {
	if len(header) == 0 {
		return ""
	}
	return strings.Join(header, "\r\n") + "\r\n"
}

// chunk writes one chunk.
func (a *asked) chunk(s string) { a.say(fmt.Sprintf("%x\r\n%s\r\n", len(s), s)) }

func (a *asked) chunks(ss ...string) {
	for _, s := range ss {
		a.chunk(s)
	}
}

// end ends a chunked body well.
func (a *asked) end() { a.say("0\r\n\r\n") }

// fin closes the connection politely, in the middle of whatever it carries.
func (a *asked) fin() {
	a.c.Close()
	a.stop = true
}

// rst resets it.
func (a *asked) rst() {
	a.c.(*net.TCPConn).SetLinger(0)
	a.fin()
}

// hang says nothing until the proxy closes the connection.
func (a *asked) hang() {
	a.stop = true
	io.Copy(io.Discard, a.br)
	close(a.left)
}

// answer sends a whole response.
func (a *asked) answer(status int, body string, header ...string) {
	a.say(fmt.Sprintf("HTTP/1.1 %d X\r\nContent-Length: %d\r\n%s\r\n%s", status, len(body), lines(header), body))
}

// next is the next request that arrives.
func (p *provider) next() *asked {
	p.t.Helper()
	select {
	case a := <-p.arrived:
		return a
	case <-time.After(patience):
		p.t.Fatal("no request reached the provider")
		return nil
	}
}

// within fails the test if c does not happen.
func within(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("waited in vain: %s", what)
	}
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
}

// client speaks HTTP/1.1 to the proxy over one bare connection.
type client struct {
	t  *testing.T
	c  net.Conn
	br *bufio.Reader
}

func dial(t *testing.T, addr string) *client {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &client{t, c, bufio.NewReader(c)}
}

func (c *client) post(path, body string, header ...string) *client {
	c.t.Helper()
	return c.say(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: proxy\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s",
		path, len(body), lines(header), body))
}

func (c *client) say(s string) *client {
	c.t.Helper()
	if _, err := io.WriteString(c.c, s); err != nil {
		c.t.Fatal(err)
	}
	return c
}

func (c *client) response() *http.Response {
	c.t.Helper()
	c.c.SetReadDeadline(time.Now().Add(patience))
	res, err := http.ReadResponse(c.br, nil)
	if err != nil {
		c.t.Fatalf("no response: %v", err)
	}
	return res
}

// allOf reads a body to its end, and tells how it ended.
func allOf(res *http.Response) (string, error) {
	b, err := io.ReadAll(res.Body)
	return string(b), err
}

// until reads from r until want has come.
func until(t *testing.T, r io.Reader, want string) string {
	t.Helper()
	var got bytes.Buffer
	buf := make([]byte, 4096)
	for !strings.Contains(got.String(), want) {
		n, err := r.Read(buf)
		got.Write(buf[:n])
		if err != nil {
			t.Fatalf("the body ended (%v) before %q; it was %q", err, want, got.String())
		}
	}
	return got.String()
}
