package proxy

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/upstream"
)

// through is a connection to a proxy in front of l, and what ends the proxy.
func through(b *testing.B, l net.Listener) (c net.Conn, end func()) {
	b.Helper()
	client := upstream.New(upstream.Config{Proxy: upstream.NoProxy})
	s, err := New(Config{Upstreams: []Upstream{{Name: "openai", URL: "http://" + l.Addr().String()}}, Client: client})
	if err != nil {
		b.Fatal(err)
	}
	front, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go s.Serve(front)
	if c, err = net.Dial("tcp", front.Addr().String()); err != nil {
		b.Fatal(err)
	}
	return c, func() {
		_ = s.Shutdown(b.Context())
		client.Close()
	}
}

// BenchmarkEvents is the cost of events on their way through, over real sockets:
// one provider write and one client read each.
func BenchmarkEvents(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	step := make(chan struct{})
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			return
		}
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
		event := []byte(oc("a word "))
		for range step {
			if _, err := c.Write(event); err != nil {
				return
			}
		}
	}()
	c, end := through(b, l)
	io.WriteString(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: "+strconv.Itoa(len(chatAsk))+"\r\n\r\n"+chatAsk)
	br := bufio.NewReader(c)
	step <- struct{}{}
	for line := ""; !strings.Contains(line, "a word"); {
		if line, err = br.ReadString('\n'); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		step <- struct{}{}
		for {
			line, err := br.ReadSlice('\n')
			if err != nil {
				b.Fatal(err)
			}
			if bytes.Contains(line, []byte("a word")) {
				break
			}
		}
	}
	b.StopTimer()
	c.Close()
	close(step)
	end()
}

// BenchmarkCalls is the cost of calls that do not stream, one after the other on one
// connection.
func BenchmarkCalls(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	body := `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"` + strings.Repeat("word ", 200) + `"},"finish_reason":"stop"}]}`
	reply := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				br := bufio.NewReader(c)
				for {
					n := 0
					for {
						line, err := br.ReadSlice('\n')
						if err != nil {
							return
						}
						if v, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
							n, _ = strconv.Atoi(strings.TrimSpace(string(v)))
						}
						if len(line) == 2 {
							break
						}
					}
					if _, err := br.Discard(n); err != nil {
						return
					}
					if _, err := io.WriteString(c, reply); err != nil {
						return
					}
				}
			}()
		}
	}()
	c, end := through(b, l)
	ask := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("x", 2000) + `"}]}`
	request := []byte("POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(ask)) + "\r\n\r\n" + ask)
	br := bufio.NewReader(c)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(request); err != nil {
			b.Fatal(err)
		}
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			b.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, res.Body); err != nil || int(n) != len(body) {
			b.Fatal(n, err)
		}
	}
	c.Close()
	end()
}
