package statuspage

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/planner"
)

func served(p *Page, guard func(http.HandlerFunc) http.HandlerFunc) *http.ServeMux {
	mux := http.NewServeMux()
	if guard == nil {
		guard = func(h http.HandlerFunc) http.HandlerFunc { return h }
	}
	p.Routes(mux, guard)
	return mux
}

func ask(h http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for _, f := range header {
		name, v, _ := strings.Cut(f, ": ")
		r.Header.Set(name, v)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"runs":[]}`)) }

// Every route is a GET, keeps other sites out, and loads nothing from elsewhere.
func TestRoutesAreStrict(t *testing.T) {
	mux := served(&Page{Board: boardAt(noon), Runs: ok, Run: ok}, nil)
	for target, kind := range map[string]string{
		"/status": "text/html", "/status/status.css": "text/css", "/status/status.js": "text/javascript", "/status/dom.js": "text/javascript",
		"/api/status": "application/json", "/api/runs": "", "/api/runs/00": "",
	} {
		w := ask(mux, "GET", target)
		if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), kind) {
			t.Errorf("%s: %d %s", target, w.Code, w.Header().Get("Content-Type"))
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin", "X-Frame-Options": "DENY", "Cache-Control": "no-store",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q", target, name, got)
			}
		}
		if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", target, csp)
		}
		for _, method := range []string{"POST", "PUT", "DELETE"} {
			if w := ask(mux, method, target); w.Code != http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d", method, target, w.Code)
			}
		}
	}
	if w := ask(mux, "GET", "/"); w.Code != http.StatusFound || w.Header().Get("Location") != "/status" {
		t.Errorf("/: %d", w.Code)
	}
	if w := ask(mux, "GET", "/status/nothing.js"); w.Code != http.StatusNotFound {
		t.Errorf("a file that is not there: %d", w.Code)
	}
}

// A browser says for which site it asks; another site's pages get nothing.
func TestOtherSitesGetNothing(t *testing.T) {
	mux := served(&Page{Board: boardAt(noon), Runs: ok, Run: ok}, nil)
	for from, code := range map[string]int{"same-origin": 200, "none": 200, "same-site": 403, "cross-site": 403} {
		for _, target := range []string{"/api/status", "/api/runs", "/api/runs/00"} {
			if w := ask(mux, "GET", target, "Sec-Fetch-Site: "+from); w.Code != code {
				t.Errorf("%s from %s: %d", target, from, w.Code)
			}
		}
	}
}

// The page tells nothing; all that does asks the guard.
func TestGuardStandsBeforeNumbers(t *testing.T) {
	shut := func(http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusUnauthorized) }
	}
	mux := served(&Page{Board: boardAt(noon), Runs: ok, Run: ok}, shut)
	for target, code := range map[string]int{"/status": 200, "/status/status.js": 200, "/api/status": 401, "/api/runs": 401, "/api/runs/00": 401} {
		if w := ask(mux, "GET", target); w.Code != code {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
}

func TestStatusHoldsWhatThePageShows(t *testing.T) {
	b := boardAt(noon)
	b.Begin(subject("r")).Note(cut(0, planner.ContinueText))
	mux := served(&Page{Board: b, Status: func() any { return map[string]int{"live": 7} }, Epoch: noon}, nil)
	var got struct {
		Epoch      string
		Status     map[string]int
		Live       []Live
		Recoveries []Recovery
		History    []Tick
		Ledger     bool
	}
	if err := json.Unmarshal(ask(mux, "GET", "/api/status?after=nonsense").Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Epoch == "" || got.Status["live"] != 7 || len(got.Live) != 1 || len(got.Recoveries) != 1 || len(got.History) != 1 || got.Ledger {
		t.Errorf("%+v", got)
	}
	if w := ask(mux, "GET", "/api/runs"); w.Code != http.StatusNotFound {
		t.Errorf("runs without a ledger: %d", w.Code)
	}
}

// No part makes markup of text, runs text, or loads anything from elsewhere.
func TestPartsMakeNoMarkup(t *testing.T) {
	bad := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|style=|onclick=|https?://`)
	parts, err := files.ReadDir("page")
	if err != nil || len(parts) < 5 {
		t.Fatalf("%d parts, %v", len(parts), err)
	}
	for _, f := range parts {
		body, err := files.ReadFile("page/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(body)) {
			if found := bad.FindString(line); found != "" && !strings.Contains(line, "http://www.w3.org/2000/svg") {
				t.Errorf("%s has %s in %s", f.Name(), found, line)
			}
		}
	}
}
