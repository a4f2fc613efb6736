package relay_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

// A string that no JSON parser takes, in an event that is JSON otherwise: the walk looked for
// its end only, so that it went to the client, whose SDK threw the answer away. It is an event
// that is none, as any other that does not parse; also where an event like the one before is
// not walked at all.
func TestBrokenStringIsNotForTheClient(t *testing.T) {
	said := betweenHead + betweenTail
	for _, a := range authors {
		broken := func(spelled string) string {
			whole := a.text
			switch a.name {
			case invoke.name:
				whole = messagesWire.text
			case converse.name:
				return frameOf("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"`+spelled+`"}}`)
			}
			b := strings.Replace(whole(one, "MARK"), "MARK", spelled, 1)
			if a.name == invoke.name {
				return inChunks(b)
			}
			return b
		}
		ability, repeats := dialect.Ability{Manners: []turn.Manner{a.main}}, ""
		if a.main == turn.Asked {
			repeats = said[len(said)-40:]
		}
		for name, spelled := range map[string]string{"unknown escape": `a\x20b`, "half escape": `a\u12 b`, "control": "a\x01b", "tab": "a\tb"} {
			for when, before := range map[string]string{"first": "", "like the one before": a.text(one, "b")} {
				t.Run(a.name+"/"+name+"/"+when, func(t *testing.T) {
					said, repeats := said, repeats
					if before != "" {
						if said += "b"; repeats != "" {
							repeats = said[len(said)-40:]
						}
					}
					replies := []relaytest.Reply{
						fin(string(numbered(a.begin(one) + a.text(one, said[:len(betweenHead+betweenTail)]) + before + broken(spelled) + a.text(one, "lost") + a.end(one, "")))),
						fin(a.begin("two"), a.text("two", repeats), a.text("two", " now"), a.end("two", repeats+" now")),
					}
					w := relaytest.World{Dialect: a.d, Config: relay.Config{Anchor: 40, Targets: []relay.Target{{Ability: ability}}}}
					res, err := w.Run([]byte(a.request), inTurn(replies))
					if err != nil || res.Broken != "" || res.End != relay.Clean || bytes.Contains(res.Body, []byte(spelled)) {
						t.Fatalf("%v %s, ended %v as %s, plans %v\n%s", err, res.Broken, res.End, res.Outcome(), res.Plans(), res.Body)
					}
					s, _, err := relaytest.Fold(a.d, mustParse(a.d, []byte(a.request)), res.Body)
					if err != nil || string(s.Prose()) != said+" now" {
						t.Errorf("%v, has %q, want %q", err, s.Prose(), said+" now")
					}
				})
			}
		}
	}
}
