package faultinject

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
)

// FIELD-REPORTS A7, F23: a 200 that never says anything.
func TestHollowAnswers(t *testing.T) {
	for directive, want := range map[string]struct{ kind, body string }{
		"empty":         {"text/event-stream; charset=utf-8", ""},
		"only-comments": {"text/event-stream; charset=utf-8", ": processing\n\n: processing\n\n"},
		"only-done":     {"text/event-stream; charset=utf-8", "data: [DONE]\n\n"},
		"only-blank":    {"text/event-stream; charset=utf-8", "\n\n\n\n"},
		"html":          {"text/html", hollows["html"]},
	} {
		t.Run(directive, func(t *testing.T) {
			s := start(t, Config{Script: MustScript("attempt 1: " + directive)})
			path, body := request(Chat)
			got := post(t, s, path, body)
			if got.status != 200 || got.err != nil || got.body != want.body || got.header.Get("Content-Type") != want.kind {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestMislabelledStreams(t *testing.T) {
	for directive, want := range map[string]string{"content-type application/json": "application/json", "content-type none": ""} {
		s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: " + directive)})
		path, body := request(Messages)
		got := post(t, s, path, body)
		if got.header.Get("Content-Type") != want || hear(t, Messages, got.body).text != shortText {
			t.Errorf("%s: %v", directive, got.header)
		}
	}
}

// FIELD-REPORTS F1: compressed although nobody asked; every event decodable as
// soon as it is sent.
func TestCompressedAnswers(t *testing.T) {
	open := map[string]func(io.Reader) io.Reader{
		"gzip": func(r io.Reader) io.Reader {
			z, err := gzip.NewReader(r)
			if err != nil {
				t.Fatal(err)
			}
			return z
		},
		"br": func(r io.Reader) io.Reader { return brotli.NewReader(r) },
	}
	for encoding, reader := range open {
		path, body := request(Messages)
		s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: " + encoding + "\nattempt 2: " + encoding + "; polite after event 5")})
		whole := post(t, s, path, body, "X-Fault-Turn", "a")
		s.Reset()
		plain, err := io.ReadAll(reader(strings.NewReader(whole.body)))
		if err != nil || whole.header.Get("Content-Encoding") != encoding || hear(t, Messages, string(plain)).text != shortText {
			t.Errorf("%s: %v %v", encoding, err, whole.header)
		}
		// A cut stream decodes up to the cut: each event was flushed.
		s = start(t, Config{Scenario: "text", Script: MustScript("attempt 1: " + encoding + "; polite after event 5")})
		cut := post(t, s, path, body)
		plain, err = io.ReadAll(reader(strings.NewReader(cut.body)))
		if bytes.Count(plain, []byte("\n\n")) != 5 || err == nil {
			t.Errorf("%s, cut: %d events, %v", encoding, bytes.Count(plain, []byte("\n\n")), err)
		}
	}
}

func TestInsertedEvents(t *testing.T) {
	full := len(Render(Messages, say(shortText), Options{}))
	for _, tc := range []struct {
		name, directive string
		events          int
		has             string
	}{
		{"duplicate", "duplicate after text 2", full + 1, ""},
		{"garbage", "garbage after text 2", full + 1, "ind\x01\xff"},
		{"missing blank line", "no-blank-line", full - 1, ""},
		{"trickle", "trickle 7", full, ""},
		{"a short stall", "stall 1ms after text 2", full, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: " + tc.directive)})
			path, body := request(Messages)
			got := post(t, s, path, body)
			if n := strings.Count(got.body, "\n\n"); n != tc.events || got.err != nil || !strings.Contains(got.body, tc.has) {
				t.Errorf("%d events, want %d, %v", n, tc.events, got.err)
			}
			if x := s.Log()[0]; !x.Applied {
				t.Error("the log does not say that the fault was applied")
			}
		})
	}
	t.Run("the last event ends without any newline", func(t *testing.T) {
		s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: no-blank-line")})
		path, body := request(Messages)
		if got := post(t, s, path, body); !strings.HasSuffix(got.body, `{"type":"message_stop"}`) {
			t.Errorf("%q", got.body[len(got.body)-40:])
		}
	})
}

// Faults that never end: the client reads until it has seen enough, leaves, and
// the log says so.
func TestEndlessFaults(t *testing.T) {
	for _, tc := range []struct {
		name    string
		dialect Dialect
		script  string
		until   string // the client leaves when it has seen this
		before  string // must have come before it
		never   string
	}{
		{"stall", Messages, "stall after text 2", `"text_delta"`, "message_start", "message_stop"},
		{"pings", Messages, "pings every 1ms after text 2", "event: ping\ndata: {\"type\": \"ping\"}\n\nevent: ping\ndata: {\"type\": \"ping\"}\n\n", "text_delta", "message_stop"},
		{"chat pings are comments", Chat, "pings every 1ms after text 2", ": keepalive\n\n: keepalive\n\n", `"content":`, "[DONE]"},
		{"comments", Messages, "keepalives every 1ms in text", ": keepalive\n\n: keepalive\n\n", "text_delta", "message_stop"},
		{"warm without terminator", Chat, "warm every 1ms", ": hb\n\n: hb\n\n", `"finish_reason":"stop"`, "[DONE]"},
		{"after the end", Chat, "after-end", "ZZ", "[DONE]", "\x00"},
		{"headers and then nothing", Chat, "stall after headers", "", "", "data:"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: " + tc.script)})
			seen := readUntil(t, s, tc.dialect, tc.until)
			if !strings.Contains(seen, tc.before) || strings.Contains(seen, tc.never) {
				t.Errorf("%s", seen)
			}
			list, err := s.WaitLog(patience(t), allEnded(1))
			if err != nil || list[0].Ending != ClientClosed || !list[0].Applied {
				t.Errorf("%v applied %v, %v", list[0].Ending, list[0].Applied, err)
			}
		})
	}
}

func readUntil(t *testing.T, s *Server, d Dialect, until string) string {
	t.Helper()
	path, body := request(d)
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(patience(t), http.MethodPost, s.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = credentials()
	res, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var seen []byte
	buf := make([]byte, 512)
	for !bytes.Contains(seen, []byte(until)) {
		n, err := res.Body.Read(buf)
		seen = append(seen, buf[:n]...)
		if err != nil {
			t.Fatalf("after %q: %v", seen, err)
		}
	}
	return string(seen)
}

func TestAcceptAndNeverAnswer(t *testing.T) {
	s := start(t, Config{Script: MustScript("attempt 1: stall before headers")})
	path, body := request(Chat)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = credentials()
	failed := make(chan error)
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	go func() {
		_, err := tr.RoundTrip(req)
		failed <- err
	}()
	arrived := func(list []Exchange) bool { return len(list) == 1 && list[0].Turn != "" }
	if _, err := s.WaitLog(patience(t), arrived); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-failed; err == nil {
		t.Error("it answered")
	}
	list, err := s.WaitLog(patience(t), allEnded(1))
	if err != nil || list[0].Ending != ClientClosed || list[0].Status != 0 {
		t.Errorf("%v %d %v", list[0].Ending, list[0].Status, err)
	}
}

func TestCloseEndsHangingExchanges(t *testing.T) {
	s, err := New(Config{Script: MustScript("attempt 1: stall after event 2")})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	done := make(chan answerOf)
	path, body := request(Chat)
	go func() { done <- post(t, s, path, body) }()
	if _, err := s.WaitLog(patience(t), func(list []Exchange) bool { return len(list) == 1 && list[0].Turn != "" }); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if got := <-done; got.err == nil {
		t.Error("the client saw a proper end")
	}
	if end := s.Log()[0].Ending; end != ServerClosed && end != ClientClosed {
		t.Errorf("%v", end)
	}
	if err := s.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
}

func TestWaitLogGivesUpWithItsContext(t *testing.T) {
	s := start(t, Config{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := s.WaitLog(ctx, allEnded(1)); err == nil {
		t.Error("no error")
	}
}

// The raw bytes of an HTTP/1.1 cut: whole chunks, and no last one.
func TestFINLeavesOutTheLastChunk(t *testing.T) {
	s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: fin after event 2\nattempt 2: polite after event 2")})
	path, body := request(Chat)
	cut, err := rawExchange(t, s, path, body)
	if err != nil || strings.HasSuffix(cut, "\r\n0\r\n\r\n") || !strings.HasSuffix(cut, "\n\n\r\n") {
		t.Errorf("%v %q", err, cut)
	}
	polite, err := rawExchange(t, s, path, body)
	if err != nil || !strings.HasSuffix(polite, "\r\n0\r\n\r\n") {
		t.Errorf("%v %q", err, polite)
	}
}
