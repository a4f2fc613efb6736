package gauge

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

func TestATargetIsAskedAsOftenAsItIsSaid(t *testing.T) {
	p := openProvider(t)
	for _, w := range wires {
		a, err := Aim(within(t), Target{Wire: w, URL: "http://" + p.Addr(), Model: Shape{Events: 10, Bytes: 5}.Model(), Requests: 5, Parallel: 2, Tokens: 100}, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if a.Requests != 5 || a.Whole != 5 || a.Events != 50 || len(a.Faults) > 0 || a.First.Max < 1 || a.Gaps.Max < 1 {
			t.Errorf("%s: %+v", w, a)
		}
	}
}

// aimAt runs the command at a server with the key "sk-test/0+secret".
func aimAt(t *testing.T, url string, more ...string) (out, log string, err error) {
	t.Helper()
	t.Setenv("BENCH_TEST_KEY", "sk-test/0+secret\n") // as a file has it
	var o, l bytes.Buffer
	args := append([]string{"-target", url, "-model", "m", "-requests", "3", "-key-env", "BENCH_TEST_KEY"}, more...)
	err = Command(within(t), args, []string{"bench"}, "", &o, &l)
	return o.String(), l.String(), err
}

// Of a target that answered nobody there was a table of zeros, and behind it the provider's
// JSON, cut in the middle.
func TestATargetThatRefusesIsToldInItsWords(t *testing.T) {
	for _, c := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"OpenAI's way", `{"error":{"message":"Incorrect API key provided: sk-test/0+secret.","type":"invalid_request_error","code":"invalid_api_key"}}`, 401,
			`3 × status 401: "invalid_request_error: Incorrect API key provided: [key]."`},
		{"Anthropic's way", `{"type":"error","error":{"type":"not_found_error","message":"model: m"}}`, 404, `3 × status 404: "not_found_error: model: m"`},
		{"an error that is a string", `{"error":"no such\n  route"}`, 404, `3 × status 404: "no such route"`},
		{"a message alone", `{"message":"slow down"}`, 429, `3 × status 429: "slow down"`},
		{"a page", "<html>\n<h1>404</h1>", 404, `3 × status 404: "<html> <h1>404</h1>"`},
		{"nothing", "", 503, `3 × status 503: ""`},
		{"the key where the text is cut", strings.Repeat("x", 290) + "sk-test/0+secret", 401, "x[key]"},
		{"the key in JSON that escapes it", `{"error":{"message":"no sk-test\/0\u002bsecret"}}`, 401, `3 × status 401: "no [key]"`},
		{"the key in an event", "data: {\"error\":{\"message\":\"no sk-test\\/0+secret\"}}\n\n", 200, `3 × error event: "no [key]"`},
		{"a page in place of a stream", "<html>", 200, `3 × an answer without an event, whose Content-Type is "text/html; charset=utf-8"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer s.Close()
			file := filepath.Join(t.TempDir(), "samples.json")
			out, log, err := aimAt(t, s.URL, "-json", file)
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), s.URL+"/v1/chat/completions came to its end") {
				t.Errorf("%v", err)
			}
			if out != "" {
				t.Errorf("nothing was measured, and it is shown:\n%s", out)
			}
			if all := fmt.Sprint(out, log, err); strings.Contains(all, "secret") {
				t.Errorf("the key is told:\n%s", all)
			}
			if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("nothing was measured, and there is a file: %v", err)
			}
		})
	}
}

func TestATargetThatIsNotThere(t *testing.T) {
	out, _, err := aimAt(t, "http://user:hidden@"+freeAddr()+"/v1?key=hidden")
	if err == nil || !strings.Contains(err.Error(), "3 × dial tcp 127.0.0.1:") || !strings.Contains(err.Error(), "refused") || strings.Contains(err.Error(), "hidden") || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
}

// An SDK that is sent elsewhere with its key is one thing, and a measurement another.
func TestATargetsKeyGoesNowhereElse(t *testing.T) {
	var asked atomic.Int64
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer thief.Close()
	s := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	defer s.Close()
	if _, _, err := aimAt(t, s.URL, "-wire", "messages"); err == nil || !strings.Contains(err.Error(), "status 307") || asked.Load() > 0 {
		t.Errorf("%v, and the other was asked %d times", err, asked.Load())
	}
}

func TestATargetWithoutAKeyIsToldHowToHaveOne(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "who?", http.StatusUnauthorized) }))
	defer s.Close()
	err := Command(within(t), strings.Fields("-model m -target "+s.URL), []string{"bench"}, "", io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "--key-env names") {
		t.Errorf("%v", err)
	}
	if _, _, err := aimAt(t, s.URL); err == nil || strings.Contains(err.Error(), "--key-env") {
		t.Errorf("it had one: %v", err)
	}
}

// A polite end without the terminal is the break that SDKs take for an answer.
func TestATargetThatEndsEarlyIsNotWhole(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, Chat.opening()+Chat.word("half of it"))
	}))
	defer s.Close()
	a, err := Aim(within(t), Target{Wire: Chat, URL: s.URL, Model: "m", Requests: 2, Parallel: 1}, io.Discard)
	if err != nil || a.Whole != 0 || a.Events != 2 || a.Faults["the stream ended early"] != 2 {
		t.Errorf("%+v, %v", a, err)
	}
	// What came is shown, and of what did not there is no row of zeros.
	out, _, err := aimAt(t, s.URL)
	if err == nil || !strings.Contains(out, "first text") || strings.Contains(out, "whole answer") || !strings.Contains(out, "3 × the stream ended early") {
		t.Errorf("%v\n%s", err, out)
	}
}

// What a server answers, and what it was asked for, is text on the terminal of who measures it.
func TestATargetsWordsStayText(t *testing.T) {
	const hostile = "\x1b]0;owned\a\x1b[2J\nforged \u009b2J\u202e"
	for name, answer := range map[string]http.HandlerFunc{
		"a refusal": func(w http.ResponseWriter, _ *http.Request) { http.Error(w, hostile, http.StatusTeapot) },
		"an error event": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "data: {\"error\":\"\u009b2J\u202e\"}\n\n")
		},
		"no event":      func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "data: "+hostile+"\n\n") },
		"a broken head": func(w http.ResponseWriter, _ *http.Request) { raw(w, "HTTP/1.1 \x1b[2J\r\n\r\n") },
	} {
		s := httptest.NewServer(answer)
		var out, log bytes.Buffer
		err := Command(within(t), []string{"-target", s.URL, "-model", hostile, "-requests", "1"}, []string{"bench"}, "", &out, &log)
		s.Close()
		if err == nil || !strings.Contains(err.Error(), "1 × ") {
			t.Errorf("%s: %v", name, err)
		}
		if got := fmt.Sprint(out.String(), log.String(), err); strings.ContainsAny(got, "\x1b\a\u009b\u202e") || strings.Contains(got, "\nforged") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestALoadsRefusalStaysText(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		raw(w, "HTTP/1.1 418 \x1b[2J\r\nContent-Length: 12\r\n\r\n\x1b[2J\nforged ")
	}))
	defer s.Close()
	var out, log bytes.Buffer
	err := Command(within(t), strings.Fields("-peers= -scenarios json -rounds 1 -settle 1ms -window 20ms -provider "+freeAddr()+" -peer hostile="+s.URL), []string{"bench"}, "", &out, &log)
	if got := fmt.Sprint(out.String(), log.String(), err); !strings.Contains(got, "status 418") || strings.Contains(got, "\x1b") || strings.Contains(got, "\nforged") {
		t.Errorf("%q", got)
	}
}

// raw answers without a word of net/http's.
func raw(w http.ResponseWriter, answer string) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_, _ = io.WriteString(c, answer)
		_ = c.Close()
	}
}
