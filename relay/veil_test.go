package relay_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/openairesponses"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

// veiled runs a request of the client's in the background, without its knowledge.
func veiled(t *testing.T, p relaytest.Provider, leave int) relaytest.Result {
	t.Helper()
	body := []byte(`{"model":"gpt-4o","stream":true,"input":"What is 2 + 2?"}`)
	d := openairesponses.Dialect{}
	req := mustParse(d, body)
	req.Veiled = true
	w := relaytest.World{Dialect: d, LeaveAfter: leave, Config: relay.Config{
		Targets: []relay.Target{{Name: "test", Ability: dialect.Ability{Manners: []turn.Manner{turn.Asked}}}},
	}}
	res, err := w.RunAs(req, d.Background(req, body), p)
	if err == nil && res.Broken != "" {
		err = fmt.Errorf("law: %s", res.Broken)
	}
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// foreground is a recording in the background as it would have been in the foreground:
// without response.queued, and numbered without gaps.
func foreground(units [][]byte) []byte {
	var out []byte
	n := 0
	for _, u := range units {
		if bytes.HasPrefix(u, []byte("event: response.queued")) {
			continue
		}
		u = bytes.ReplaceAll(u, []byte(`"background":true`), []byte(`"background":false`))
		if bytes.HasPrefix(u, []byte("event: response.created")) {
			u = bytes.Replace(u, []byte(`"status":"queued"`), []byte(`"status":"in_progress"`), 1)
		}
		was := named("sequence_number")(u)
		out = append(out, bytes.Replace(u, []byte(`"sequence_number":`+was), fmt.Appendf(nil, `"sequence_number":%d`, n), 1)...)
		n++
	}
	return out
}

// A caller who asked for nothing of the kind gets the foreground's stream, cut or not:
// the cursor is the provider's, the numbers are the caller's.
func TestBackgroundIsNotSeen(t *testing.T) {
	k := keepers(t)[0]
	if n := bytes.Count(foreground(k.held.Units), []byte("background\":true")) + bytes.Count(foreground(k.held.Units), []byte("queued")); n > 0 {
		t.Fatalf("the expectation shows it %d times", n)
	}
	for _, at := range append(k.cuts(), len(k.stream())) {
		if at < len(k.held.Units[0]) || k.ended(at) && at < len(k.stream()) {
			continue
		}
		h := k.held
		h.Cuts, h.End.How = []int{at, at}, interrupt.Reset
		res := veiled(t, func(q relaytest.Request) relaytest.Reply {
			if q.N == 1 && !bytes.Contains(q.Body, []byte(`"background":true`)) {
				t.Fatalf("what goes up: %s", q.Body)
			}
			r, _ := h.Answer(q)
			return r
		}, 0)
		if want := foreground(k.held.Units); res.End != relay.Clean || !bytes.Equal(res.Body, want) {
			t.Fatalf("cut at %d: %v %s %v\ngot  %s\nwant %s", at, res.End, res.Outcome(), res.Plans(), res.Body, want)
		}
	}
}

// A provider that does not take such requests is sent the client's own, at no price
// but the one round trip, and whoever drives the stream can remember it.
func TestBackgroundThatIsRefusedIsTakenBack(t *testing.T) {
	k := keepers(t)[0]
	for _, refusal := range []string{
		`{"error":{"message":"Unknown parameter: 'background'.","type":"invalid_request_error","param":"background","code":"unknown_parameter"}}`,
		`{"error":{"message":"Background mode is not supported for zero data retention.","type":"invalid_request_error"}}`,
	} {
		res := veiled(t, func(q relaytest.Request) relaytest.Reply {
			if bytes.Contains(q.Body, []byte("background")) {
				return relaytest.Reply{Status: 400, Chunks: [][]byte{[]byte(refusal)}}
			}
			cut := relaytest.Reply{Chunks: [][]byte{foreground(k.held.Units)}}
			if q.N == 2 {
				cut = relaytest.Reply{Status: 503}
			}
			return cut
		}, 0)
		if !bytes.Equal(res.Body, foreground(k.held.Units)) || len(res.Requests) != 3 {
			t.Errorf("%d attempts, %s", len(res.Requests), res.Body)
		}
		if sum := res.Notes[len(res.Notes)-1].Summary; sum.Recoveries != 1 {
			t.Errorf("%d recoveries, one is the 503's", sum.Recoveries)
		}
		demoted := 0
		for _, n := range res.Notes {
			if n.Kind == relay.NoteDemoted && n.Manner == turn.Provider {
				demoted++
			}
		}
		if demoted != 1 {
			t.Errorf("told %d times", demoted)
		}
	}
	// Any other refusal is the provider's word on the request.
	res := veiled(t, func(relaytest.Request) relaytest.Reply {
		return relaytest.Reply{Status: 400, Chunks: [][]byte{[]byte(`{"error":{"message":"no such model"}}`)}}
	}, 0)
	if len(res.Requests) != 1 || res.Head.Status != 400 {
		t.Errorf("%d attempts, %d", len(res.Requests), res.Head.Status)
	}
}

// The client's departure ends what it does not know of.
func TestBackgroundEndsWithItsClient(t *testing.T) {
	k := keepers(t)[0]
	res := veiled(t, func(q relaytest.Request) relaytest.Reply {
		r, _ := k.held.Answer(q)
		return r
	}, 1000)
	if len(res.Abandoned) != 1 || !strings.HasSuffix(res.Abandoned[0].Below, "/cancel") {
		t.Errorf("abandoned: %+v", res.Abandoned)
	}
}
