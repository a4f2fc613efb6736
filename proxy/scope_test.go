package proxy

import (
	"testing"
)

// Credentials rotate, sessions' by the minute. Who is named by a header of the
// gateway in front keeps its turns, and nobody else's credential brings them; without
// the header the credential counts as ever.
func TestScopeByAHeader(t *testing.T) {
	sp := speakers[0]
	for _, tc := range []struct {
		name   string
		again  []string
		theirs bool
	}{
		{"a new credential", []string{"Authorization: Bearer new", "X-Tenant: one"}, true},
		{"another tenant", []string{"Authorization: Bearer old", "X-Tenant: two"}, false},
		{"no header", []string{"Authorization: Bearer old"}, false},
		{"the name as a credential", []string{"Authorization: one"}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, over := sp.hanging(t)
			byHeader := func(c *Config) { c.ScopeHeader = "x-tenant" }
			c := newCommon()
			one, v := replica(t, p, c, byHeader)
			two, _ := replica(t, p, c, byHeader)
			first := dial(t, one.addr).post(sp.path, sp.ask, "X-Run-Id: r1", "Authorization: Bearer old", "X-Tenant: one").response()
			until(t, first.Body, "runs into")
			over.Store(true)
			kill(one, v)
			got, err := allOf(dial(t, two.addr).post(sp.path, sp.ask, append(tc.again, "X-Run-Id: r1")...).response())
			if err != nil || message(t, got) != sp.uncut() {
				t.Fatalf("%q, %v", message(t, got), err)
			}
			if theirs := two.Stats().Takeovers == 1; theirs != tc.theirs {
				t.Errorf("taken over: %v", theirs)
			}
		})
	}
}
