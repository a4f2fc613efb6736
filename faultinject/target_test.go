package faultinject

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// A target's own bytes, with the same faults at the same places.
func TestTargetStreamsAreFaulted(t *testing.T) {
	real := start(t, Config{Scenario: "text"})
	u, err := url.Parse(real.URL())
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, Config{Target: u, Script: MustScript("attempt 1: fin after text 3\nattempt 2: status 529\nattempt 3: error overloaded in text")})
	path, body := request(Messages)
	first := post(t, s, path, body)
	if n := strings.Count(first.body, "text_delta"); !isShort(first.err) || n != 3 {
		t.Errorf("attempt 1: %d deltas, %v", n, first.err)
	}
	if second := post(t, s, path, body); second.status != 529 {
		t.Errorf("attempt 2: %d", second.status)
	}
	if third := post(t, s, path, body); !strings.Contains(third.body, "overloaded_error") || strings.Contains(third.body, "message_stop") {
		t.Errorf("attempt 3: %s", third.body)
	}
	fourth := post(t, s, path, body)
	if h := hear(t, Messages, fourth.body); fourth.err != nil || h.text != shortText || !h.ended {
		t.Errorf("attempt 4: %v %+v", fourth.err, h)
	}
	if list, err := real.WaitLog(patience(t), allEnded(3)); err != nil || len(list) != 3 {
		t.Errorf("the target was asked %d times, %v", len(list), err)
	}
	if fifth := post(t, s, path, body); !isShort(fifth.err) {
		t.Errorf("a completed turn counts from one again: %v", fifth.err)
	}
}

func TestTargetBytesPassUnchanged(t *testing.T) {
	const stream = "\xef\xbb\xbf: hello\r\n\r\nevent: odd\r\ndata: {\"a\": \"\u2028\"}\r\n\r\ndata:[DONE]\n\ndata: tail without end"
	var asked http.Header
	var where string
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, where = r.Header.Clone(), r.URL.RequestURI()
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("X-Ratelimit-Remaining", "7")
		w.Write([]byte(stream))
	}))
	defer backend.Close()
	u, _ := url.Parse(backend.URL + "/base/")
	s := start(t, Config{Target: u})
	got := post(t, s, chatPath+"?a=b;c", chatBody("m", msg("user", "x")), "Accept-Encoding", "gzip, br", HeaderTurn, "secret")
	if got.body != stream || got.err != nil || got.header.Get("X-Ratelimit-Remaining") != "7" {
		t.Errorf("%+v", got)
	}
	if where != "/base"+chatPath+"?a=b;c" || asked.Get("Accept-Encoding") != "identity" || asked.Get(HeaderTurn) != "" || asked.Get("Authorization") != "Bearer test" {
		t.Errorf("asked %s %v", where, asked)
	}
}

func TestUnreachableTargetIsABadGateway(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	u, _ := url.Parse(gone.URL)
	gone.Close()
	s := start(t, Config{Target: u})
	path, body := request(Chat)
	if got := post(t, s, path, body); got.status != 502 || !strings.Contains(got.body, "the target cannot be reached") {
		t.Errorf("%+v", got)
	}
}
