package runs

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
)

// The operator finds the runs of all callers in the list, and asks for one by the key
// that the list tells: it answers as the run's own caller is answered.
func TestOperatorAsksByKey(t *testing.T) {
	h := open(t)
	c := h.client("alice")
	if _, err := c.Claim(t.Context(), "r1", Declaration{Reports: true}); err != nil {
		t.Fatal(err)
	}
	h.asks("alice", "r1", 1, pay)
	api := &Server{Store: h.store, Scope: scopeOf}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /runs", api.Recent)
	mux.HandleFunc("GET /by/{key}", api.ByKey)
	get := func(target string, into any) int {
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", target, nil)) // nobody's credential
		if err := json.Unmarshal(w.Body.Bytes(), into); err != nil {
			t.Fatal(err)
		}
		return w.Code
	}
	var list struct{ Runs []*Run }
	if code := get("/runs", &list); code != 200 || len(list.Runs) != 1 || len(list.Runs[0].Key) != 64 {
		t.Fatalf("%d, %+v", code, list)
	}
	var got Recovery
	if code := get("/by/"+list.Runs[0].Key, &got); code != 200 || got.Run == nil || got.Run.ID != "r1" || got.Advice != SettleBatch || len(got.Calls) != 1 || got.Reason == "" {
		t.Errorf("%d, %+v", code, got)
	}
	for _, bad := range []string{"r1", "00", list.Runs[0].Key + "00"} {
		if code := get("/by/"+bad, &failed{}); code != http.StatusBadRequest {
			t.Errorf("key %s: %d", bad, code)
		}
	}
	got = Recovery{}
	if code := get("/by/"+list.Runs[0].Key[:62]+"00", &got); code != 200 || got.Run != nil || got.Advice != Unknown {
		t.Errorf("a run that is not there: %d, %+v", code, got)
	}
}
