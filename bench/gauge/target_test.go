package gauge

import (
	"bytes"
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
