package relay_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect/openaichat"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
)

// An upgraded call for two choices was cut behind the finish of one. Its client has
// nothing of either, so that both are asked for again, as often as the budget allows:
// no answer has a choice without its finish, or of two generations.
func TestChoicesThatNobodyHasAreAskedForAgain(t *testing.T) {
	d := openaichat.Dialect{}
	body := []byte(`{"model":"m","n":2,"messages":[{"role":"user","content":"go"}]}`)
	own := mustParse(d, body)
	up, why := d.Upgrade(own, body)
	if up == nil {
		t.Fatal(why)
	}
	req := mustParse(d, up)
	req.Upgraded = own
	choice := func(index int, delta, finish string) string {
		return fmt.Sprintf(`data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":%d,"delta":{%s},"finish_reason":%s}]}`+"\n\n", index, delta, finish)
	}
	say := func(text string) string {
		return choice(0, `"role":"assistant","content":"`+text+`A"`, "null") + choice(1, `"role":"assistant","content":"`+text+`B"`, "null") + choice(0, "", `"stop"`)
	}
	for _, how := range []interrupt.Ending{interrupt.EOF, interrupt.Reset} {
		for _, cuts := range []int{1, 3} {
			w := relaytest.World{Dialect: d, Config: relay.Config{Targets: []relay.Target{{Ability: prefilling}}}}
			res, err := w.RunAs(req, up, func(q relaytest.Request) relaytest.Reply {
				if q.N <= cuts {
					return relaytest.Reply{Chunks: [][]byte{[]byte(say("old "))}, End: interrupt.Ended{How: how}}
				}
				return fin(say("new "), choice(1, "", `"stop"`), done)
			})
			if err != nil || res.Broken != "" || res.End != relay.Clean || res.Head.Status != 200 || len(res.Requests) != cuts+1 {
				t.Fatalf("%v, %d cuts: %v %s, ended %v as %s, plans %v", how, cuts, err, res.Broken, res.End, res.Outcome(), res.Plans())
			}
			if bytes.Count(res.Body, []byte(`"finish_reason":"stop"`)) != 2 || !bytes.Contains(res.Body, []byte("new A")) || !bytes.Contains(res.Body, []byte("new B")) || bytes.Contains(res.Body, []byte("old")) {
				t.Errorf("%v, %d cuts: %s", how, cuts, res.Body)
			}
		}
	}
}
