package proxy

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/turn"
)

// unstreamed is the request of a speaker as a call that does not stream.
func (s *speaker) unstreamed() string { return strings.Replace(s.ask, `"stream":true,`, "", 1) }

// told reads an ordinary answer of either dialect: text, calls, finish.
func told(t *testing.T, body string) string {
	t.Helper()
	var a struct {
		Choices []struct {
			Message struct {
				Content string
				Calls   []struct {
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			Finish string `json:"finish_reason"`
		}
		Content []struct {
			Text, Name string
			Input      json.RawMessage
		}
		Stop string `json:"stop_reason"`
	}
	if err := json.Unmarshal([]byte(body), &a); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	text, args, finish := "", "", a.Stop
	for _, c := range a.Choices {
		text += c.Message.Content
		for _, call := range c.Message.Calls {
			args += call.Function.Name + call.Function.Arguments
		}
		finish += c.Finish
	}
	for _, c := range a.Content {
		text += c.Text
		args += c.Name + string(c.Input)
	}
	return text + "|" + args + "|" + finish
}

func upgradeAll(c *Config) {
	for i := range c.Upstreams {
		c.Upstreams[i].Upgrade = true
	}
}

// An upgraded call's proxy dies in the middle of the text, or behind the finish. The
// same call at another replica gets the ordinary answer, and the provider is asked for
// no more than the rest.
func TestUpgradedCallIsTakenOver(t *testing.T) {
	for _, ph := range phases {
		if ph.kept == nil || ph.unsent {
			continue
		}
		for _, sp := range speakers {
			t.Run(ph.name+", "+sp.name, func(t *testing.T) {
				c := newCommon()
				var over atomic.Bool
				p := newProvider(t, func(a *asked) {
					if over.Load() {
						sp.answer(a)
						return
					}
					ph.say(&sp, a)
				})
				one, v := replica(t, p, c, upgradeAll)
				two, _ := replica(t, p, c, upgradeAll)
				ask := sp.unstreamed()
				if ask == sp.ask {
					t.Fatal("the request streams")
				}
				key := checkpoint.Turn(one.scope(nil), "r1", (&request{method: "POST", target: sp.path, body: []byte(ask)}).fingerprint())
				dial(t, one.addr).post(sp.path, ask, "X-Run-Id: r1")
				for range p.hitsBefore(&ph) {
					p.next()
				}
				eventually(t, "the phase is reached", func() bool {
					rec, err := c.Get(context.Background(), key)
					if err != nil {
						return false
					}
					snap, err := turn.Replay(rec.Log)
					return err == nil && ph.kept(snap)
				})
				over.Store(true)
				kill(one, v)
				res := dial(t, two.addr).post(sp.path, ask, "X-Run-Id: r1").response()
				got, err := allOf(res)
				if err != nil || res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" || told(t, got) != sp.uncut() {
					t.Fatalf("the retry got %d, %v; want %q\n%s", res.StatusCode, err, sp.uncut(), got)
				}
				if n := strings.Count(got, `"usage":`); n > 1 || sp.name == "messages" && n == 0 || res.Header.Get(headerRun) != "r1" || res.Header.Get(headerUpgrade) != "on" {
					t.Errorf("%v %s", res.Header, got)
				}
				if p.hits() != ph.asked {
					t.Errorf("the provider was asked %d times, want %d", p.hits(), ph.asked)
				}
			})
		}
	}
}

// The same call twice: the provider is asked once, the newer connection gets the answer,
// and the older one is told that it does not.
func TestNewestConnectionOfAnUpgradedCallGetsTheAnswer(t *testing.T) {
	for _, sp := range speakers {
		t.Run(sp.name, func(t *testing.T) {
			gate := make(chan struct{})
			p := newProvider(t, func(a *asked) {
				a.stream()
				a.chunks(sp.head...)
				a.chunk(sp.text(said))
				<-gate
				a.chunk(sp.text(left))
				a.chunk(sp.callOpen + sp.callRest + sp.callEnd)
				a.chunks(sp.finish...)
				a.end()
			})
			s := start(t, p, upgradeAll)
			seats := func(n int) func() bool {
				return func() bool {
					s.turns.mu.Lock()
					defer s.turns.mu.Unlock()
					for _, a := range s.turns.all {
						return a.seats == n
					}
					return false
				}
			}
			older := dial(t, s.addr).post(sp.path, sp.unstreamed(), "X-Run-Id: r1")
			p.next()
			newer := dial(t, s.addr).post(sp.path, sp.unstreamed(), "X-Run-Id: r1")
			eventually(t, "the newer one has come", seats(2))
			close(gate)
			got, err := allOf(newer.response())
			if err != nil || told(t, got) != sp.uncut() {
				t.Errorf("the newer one got %v %s", err, got)
			}
			res := older.response()
			if body, err := allOf(res); err != nil || res.StatusCode != 409 || !strings.Contains(body, "newer connection") {
				t.Errorf("the older one got %d %v %s", res.StatusCode, err, body)
			}
			if p.hits() != 1 {
				t.Errorf("the provider was asked %d times", p.hits())
			}
		})
	}
}
