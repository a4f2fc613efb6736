package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/faultinject"
)

func TestClean(t *testing.T) {
	for _, tc := range []struct{ name, text, want string }{
		{"text", "naïve 東京 🙂\n", "naïve 東京 🙂\n"},
		{"an escape", "\x1b[31mred", "␛[31mred"},
		{"a bell and a return", "a\a\rb", "a␇␍b"},
		{"C1 controls", "a\u009b2Jb", "a\ufffd2Jb"},
		{"delete", "a\x7f", "a␡"},
		{"turned writing", "a\u202eb", "a\ufffdb"},
		{"a byte that is no UTF-8", "a\x9bb", "a\ufffdb"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := clean(tc.text); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// commands a terminal would obey, a line of the log, an element of a page, a label of a metric.
const owned = "\x1b]0;owned\a\x1b[2J\u009b2J\u202e\n\ntime=now level=ERROR msg=forged\n<img src=x onerror=alert(1)>\"} 1\nunbroken_forged 1\n"

// What clients and providers choose (a model's name, an answer, an error, headers, a path)
// stays within its line of the log, whichever the format, and makes no metric.
func TestWhatOthersChooseStaysText(t *testing.T) {
	word, err := json.Marshal(owned)
	if err != nil {
		t.Fatal(err)
	}
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Request-Id", "req\u009b2J\u202e")
		if bytes.Contains(b, []byte("refuse")) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"message":%s,"type":%[1]s,"code":%[1]s}}`, word)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "data: {\"id\":%s,\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":%[1]s,\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":%[1]s},\"finish_reason\":null}]}\n\n", word)
		fmt.Fprintf(w, "data: {\"error\":{\"message\":%s,\"type\":%[1]s,\"code\":%[1]s}}\n\n", word)
	}))
	t.Cleanup(provider.Close)
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			s := serveHere(t, breakable(t, 0), "--log-format", format, "--log-level", "debug", "--wait-budget", "1s", "--upstream", "theirs="+provider.URL)
			for _, what := range []string{"answer", "refuse"} {
				for _, head := range []string{"X-Run-Id: run-" + what, "X-Run-Id: \x1b[2J", "Idempotency-Key: \u009b2J<img>", "User-Agent: \x1b[2J\u202e", "X-Stainless-Retry-Count: 1\x1b"} {
					body := fmt.Sprintf(`{"model":%s,"stream":true,"user":%[1]s,"messages":[{"role":"user","content":%q}]}`, word, what)
					s.say(t, fmt.Sprintf("POST /u/theirs/v1/chat/completions HTTP/1.1\r\nHost: x\r\n%s\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", head, len(body), body))
				}
			}
			s.say(t, "GET /u/no\x1b[2Jbody/%1b%0aforged HTTP/1.1\r\nHost: \x1b[2J\r\nConnection: close\r\n\r\n")
			metrics, status := answer(t, http.DefaultClient, s.admin+"/metrics"), answer(t, http.DefaultClient, s.admin+"/status.json")
			if strings.Contains(metrics, "forged") || strings.Contains(metrics, "owned") || strings.ContainsAny(metrics, "\x1b\u009b") {
				t.Errorf("a metric is made of it:\n%s", metrics)
			}
			if _, text, _ := strings.Cut(status, " "); !json.Valid([]byte(text)) || !strings.Contains(text, "owned") {
				t.Errorf("the page's numbers: %s", text)
			}
			s.stop()
			logged, _ := s.said.far()
			streams := 0
			for line := range strings.Lines(logged) {
				streams += strings.Count(line, "owned")
				if strings.ContainsAny(strings.TrimSuffix(line, "\n"), "\x1b\a\r\n\u009b\u202e") {
					t.Errorf("a terminal would obey %q", line)
				}
				if format == "json" && !json.Valid([]byte(line)) || format == "text" && (!strings.HasPrefix(line, "time=2") || strings.HasPrefix(line, "time=now")) {
					t.Errorf("no line of ours: %q", line)
				}
			}
			if streams == 0 {
				t.Errorf("the log has no model:\n%s", logged)
			}
		})
	}
}

// say writes a request as it is, which no client of net/http's would, and reads what comes.
func (s *served) say(t *testing.T, request string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(s.front, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, c) // it may refuse to talk
}

// The provider of faults logs what it is asked, on the terminal of who tries something.
func TestWhatFaultsIsAskedStaysText(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		said := &log{changed: make(chan struct{})}
		flags := faultsFlags{listen: "127.0.0.1:0", scenario: "text", host: "openai", logFormat: format}
		c, err := flags.config(environment{err: said})
		if err != nil {
			t.Fatal(err)
		}
		p, err := faultinject.New(c)
		if err != nil {
			t.Fatal(err)
		}
		p.Start()
		s := &served{front: p.URL()}
		word, err := json.Marshal(owned)
		if err != nil {
			t.Fatal(err)
		}
		body := fmt.Sprintf(`{"model":%s,"stream":true,"messages":[{"role":"user","content":"go"}]}`, word)
		for _, head := range []string{"X-Fault-Turn: \u009b2J\u202e", "X-Fault-Script: attempt 1: \u009b2J", "X-Fault-Scenario: \u009b2J"} {
			s.say(t, fmt.Sprintf("POST /v1/chat/completions?%%1b HTTP/1.1\r\nHost: x\r\nAuthorization: x\r\n%s\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", head, len(body), body))
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		logged, _ := said.far()
		if strings.Count(logged, "\n") != 3 || !strings.Contains(logged, "owned") || strings.ContainsAny(logged, "\x1b\a\r\u009b\u202e") {
			t.Errorf("%s: a terminal would obey %q", format, logged)
		}
	}
}

// An error is one line for each problem, and what it quotes is text.
func TestErrorsStayText(t *testing.T) {
	answers := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, owned) }))
	t.Cleanup(answers.Close)
	at := strings.TrimPrefix(answers.URL, "http://")
	keys, values := writtenFile(t, hostileKeys), writtenFile(t, hostileValues)
	for name, args := range map[string][]string{
		"an unknown flag":       {"--" + owned},
		"an unknown command":    {owned},
		"a file that is absent": {"check", "--config", owned},
		"a value":               {"check", "--idle", owned},
		"a script":              {"faults", "-e", owned},
		"a host":                {"faults", "--host", owned},
		"a scenario":            {"faults", "--scenario", owned},
		"a peer":                {"bench", "--peers", owned},
		"a target":              {"bench", "--target", owned, "--model", owned},
		"keys of a file":        {"check", "--config", keys},
		"values of a file":      {"check", "--print", "--config", values},
		"what answers":          {"health", "--admin", at},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errs bytes.Buffer
			run(t.Context(), environment{args: args, out: &out, err: &errs})
			got := out.String() + errs.String()
			if got == "" || strings.ContainsAny(got, "\x1b\a\r\u009b\u202e") {
				t.Errorf("a terminal would obey %q", got)
			}
			for line := range strings.Lines(errs.String()) {
				if !strings.HasPrefix(line, "unbroken: ") {
					t.Errorf("no line of ours: %q", line)
				}
			}
			if name == "keys of a file" || name == "values of a file" {
				if strings.Contains(got, "\nforged") || strings.Contains(got, ": forged") || !strings.Contains(got, "␊forged") {
					t.Errorf("a line is made of what a file holds:\n%s", got)
				}
			}
		})
	}
}

// YAML has escapes of its own.
const (
	hostileKeys = `"\e]0;owned\a\nforged": 1
upstreams:
  "a\e[2J\nforged": http://127.0.0.1:1
  ok: {url: "http://127.0.0.1:1", headers: {"X-A\nforged": "b"}, "\e[5m\nforged": 1}
ca_file: "/nowhere\e[2J\nforged"
`
	hostileValues = `no_proxy: "a\e[2J\nforged"
routes:
  - {model: "m\e[2J\nforged", targets: [{upstream: openai, model: "z\e[2J\nforged"}]}
`
)
