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
	up := "http://" + l.Addr().String()
	s, err := New(Config{Upstreams: []Upstream{{Name: "openai", URL: up}, {Name: "anthropic", URL: up}}, Client: client})
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
// connection: a short question, and the long prompts of agents, which are read through.
func BenchmarkCalls(b *testing.B) {
	prose := strings.Repeat(`The user wants the file \"main_test.go\" changed; see_also tool_results and so on.\n\tif err != nil {\n`, 12)
	fill := func(s string) string { return strings.ReplaceAll(s, "PROSE", prose) }
	for _, c := range []struct{ name, path, open, round, reply string }{
		{
			"chat", "/v1/chat/completions",
			`{"model":"m","messages":[{"role":"system","content":"PROSE"}`,
			`,{"role":"assistant","content":"PROSE","tool_calls":[{"id":"call_1","type":"function","function":{"name":"read","arguments":"{\"path\":\"a.go\"}"}}]}` +
				`,{"role":"tool","tool_call_id":"call_1","content":"PROSE"}`,
			`{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"PROSE"},"finish_reason":"stop"}]}`,
		},
		{
			"messages", "/v1/messages",
			`{"model":"m","max_tokens":1000,"system":"PROSE","messages":[{"role":"user","content":"hi"}`,
			`,{"role":"assistant","content":[{"type":"text","text":"PROSE"},{"type":"tool_use","id":"toolu_1","name":"read","input":{"path":"a.go"}}]}` +
				`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":[{"type":"text","text":"PROSE"}]}]}`,
			`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"PROSE"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`,
		},
		{
			"responses", "/v1/responses",
			`{"model":"m","instructions":"PROSE","input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]}`,
			`,{"type":"message","role":"assistant","content":[{"type":"output_text","text":"PROSE"}]},{"type":"function_call","call_id":"call_1","name":"read","arguments":"{\"path\":\"a.go\"}"}` +
				`,{"type":"function_call_output","call_id":"call_1","output":"PROSE"}`,
			`{"id":"resp_1","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"PROSE","annotations":[]}]}]}`,
		},
	} {
		for name, size := range map[string]int{"2KB": 0, "200KB": 200 << 10} {
			ask := fill(c.open)
			for round := fill(c.round); len(ask) < size; {
				ask += round
			}
			b.Run(c.name+"/"+name, func(b *testing.B) { called(b, c.path, ask+"]}", fill(c.reply)) })
		}
	}
}

func called(b *testing.B, path, ask, reply string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	go answering(l, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "+strconv.Itoa(len(reply))+"\r\n\r\n"+reply)
	c, end := through(b, l)
	request := []byte("POST " + path + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(ask)) + "\r\n\r\n" + ask)
	br := bufio.NewReader(c)
	b.SetBytes(int64(len(ask)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Write(request); err != nil {
			b.Fatal(err)
		}
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			b.Fatal(err)
		}
		if n, err := io.Copy(io.Discard, res.Body); err != nil || int(n) != len(reply) || res.StatusCode != http.StatusOK {
			b.Fatal(res.Status, n, err)
		}
	}
	c.Close()
	end()
}

// answering answers every request that comes to l with the same words.
func answering(l net.Listener, reply string) {
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
}
