package relay_test

import (
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/openaichat"
	"github.com/unbroken-llm/unbroken/dialect/openairesponses"
	"github.com/unbroken-llm/unbroken/relay"
)

// Nobody has anything of a turn whose process died, and its request may have been
// sent. It is sent again unless something could happen twice: a provider's tool with
// effects, a line in a history that the provider keeps.
func TestATakeoverThatStartsOverRepeatsNoEffects(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for _, tt := range []struct {
		name  string
		d     dialect.Dialect
		body  string
		again bool
	}{
		{"text", openaichat.Dialect{}, `{"model":"m","stream":true,"messages":[{"role":"user","content":"Go"}]}`, true},
		{"a hosted tool", openaichat.Dialect{}, `{"model":"m","stream":true,"tools":[{"type":"mcp"}],"messages":[{"role":"user","content":"Go"}]}`, false},
		{"a response", openairesponses.Dialect{}, `{"model":"m","stream":true,"input":"Go"}`, true},
		{"a conversation", openairesponses.Dialect{}, `{"model":"m","stream":true,"conversation":"conv_1","input":"Go"}`, false},
	} {
		req, err := tt.d.Parse([]byte(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		_, resumed, err := relay.Resume(relay.Config{}, tt.d, req, []byte{}, now)
		if err != nil {
			t.Fatal(err)
		}
		_, followed := relay.Follow(relay.Config{}, tt.d, req, now).Resume(now)
		for how, fx := range map[string]*relay.Effects{"resumed": resumed, "followed": followed} {
			if asked := fx.Open != nil; asked != tt.again {
				t.Errorf("%s, %s: sent again: %t", tt.name, how, asked)
			}
			if !tt.again && (fx.Head == nil || fx.Head.Status < 500 || fx.End != relay.Clean) {
				t.Errorf("%s, %s: not refused: %+v", tt.name, how, fx)
			}
		}
	}
}
