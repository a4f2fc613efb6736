package gauge

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
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

func TestATargetThatRefusesIsToldInItsWords(t *testing.T) {
	p := openProvider(t)
	a, err := Aim(within(t), Target{Wire: Chat, URL: "http://" + p.Addr(), Model: "unknown", Requests: 3, Parallel: 3}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	a.Table(&out)
	if a.Whole != 0 || !strings.Contains(out.String(), "0 of 3 streams whole") || !strings.Contains(out.String(), "3 × status 400") {
		t.Errorf("%s", out.String())
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
		if err == nil || !strings.Contains(out.String(), "1 × ") {
			t.Errorf("%s: %v\n%s", name, err, out.String())
		}
		if got := out.String() + log.String(); strings.ContainsAny(got, "\x1b\a\u009b\u202e") || strings.Contains(got, "\nforged") {
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
	err := Command(within(t), strings.Fields("-peers= -scenarios json -rounds 1 -settle 1ms -window 20ms -peer hostile="+s.URL), []string{"bench"}, "", &out, &log)
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
