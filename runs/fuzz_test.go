package runs

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/ledger"
)

// FuzzRequests: whatever is sent, the answer is JSON, never of a fault of ours, an error
// leaves the run as it was, and what was stored can be read.
func FuzzRequests(f *testing.F) {
	for _, s := range []struct{ path, header, body string }{
		{"claim", "", `{"holder":"x"}`},
		{"declare", "X-Run-Fence: 1", `{"reports":true,"policies":{"pay":{"recovery":"replay","attempts":2}}}`},
		{"steps", "", `{"message":"` + strings.Repeat("0a", 32) + `","calls":[{"id":"c","name":"pay"}],"ticket":{"id":"t","kind":"k","expires":"2027-01-02T03:04:05.6Z"}}`},
		{"calls/call_1/start", "X-Run-Fence: 1", `{"attempt":1}`},
		{"calls/call_1/result", "If-Match: \"2\"", `{"attempt":-1,"content":"AAEC","error":true}`},
		{"calls/call_1/wait", "Idempotency-Key: k", `{"ticket":{"id":"t","kind":"approval"}}`},
		{"calls/call_1/lose", "", `{"why":""}`},
		{"resume", "", `{"ticket":"t","kind":"approval"}`},
		{"end", "", `{"cause":"cancelled"}`},
		{"end", "X-Run-Fence: 99999999999999999999", `[1e999]`},
	} {
		f.Add(s.path, s.header, s.body)
	}
	f.Fuzz(func(t *testing.T, path, header, body string) {
		store := ledger.NewMemory(ledger.MemoryConfig{Clock: time.Now})
		scope := checkpoint.Scope{1}
		key := ledger.Key(scope, "run")
		for _, a := range []ledger.Act{ledger.Begin{ID: "run"}, ledger.Commit{Message: ledger.Sum(nil), Calls: []ledger.Asked{pay}}} {
			if _, _, err := ledger.Append(context.Background(), store, key, scope, ledger.Entry{At: time.Now(), Do: a}); err != nil {
				t.Fatal(err)
			}
		}
		before, err := store.Load(context.Background(), key)
		if err != nil {
			t.Fatal(err)
		}
		mux := http.NewServeMux()
		(&Server{Store: store, Scope: func(*http.Request) (checkpoint.Scope, error) { return scope, nil }}).Routes(mux)
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
		r.URL.Path = "/runs/run/" + path
		if name, value, ok := strings.Cut(header, ": "); ok {
			r.Header[http.CanonicalHeaderKey(name)] = []string{value}
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		after, err := store.Load(context.Background(), key)
		if err != nil {
			t.Fatal(err)
		}
		if w.Code != http.StatusOK && after.Run.Version != before.Run.Version {
			t.Fatalf("refused with %d, and the run has changed: %s", w.Code, ledger.Encode(after.Run))
		}
		if w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()) {
			t.Fatalf("no JSON: %q", w.Body)
		}
	})
}
