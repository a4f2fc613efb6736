package proxy

import (
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/relay"
)

// Codex reads no x-should-retry, and multiplied our tries by thirty: it is told
// with the one status that it takes for final and whose words it shows.
func TestCodexIsToldNotToAskAgain(t *testing.T) {
	for _, row := range []struct {
		name, originator string
		provider, client int
	}{
		{"another client", "", 503, 503},
		{"codex", "codex_exec", 503, 400},
		{"codex, of what it does not repeat", "codex_cli_rs", 429, 429},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := newProvider(t, func(a *asked) {
				a.answer(row.provider, `{"error":{"type":"server_error","code":"busy","message":"Busy."}}`, "Content-Type: application/json")
			})
			s := start(t, p, relayed(func(c *relay.Config) { c.Recoveries = 1 }))
			res := dial(t, s.addr).post("/v1/responses", `{"model":"m","stream":true,"input":"x"}`, "originator: "+row.originator).response()
			got, _ := allOf(res)
			if real := res.Header.Get("X-Unbroken-Status"); (real == "503") != (row.client != row.provider) {
				t.Errorf("the real status is told as %q", real)
			}
			if res.StatusCode != row.client || !strings.Contains(got, "Busy.") || res.Header.Get("x-should-retry") != "false" || p.hits() != 2 {
				t.Errorf("%d %v %s, after %d requests", res.StatusCode, res.Header, got, p.hits())
			}
		})
	}
}
