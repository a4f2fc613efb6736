package relay_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
)

// FIELD-REPORTS group E: errors inside a 200 stream.

// E1: an error event, first or mid-stream, in every shape that hosts use.
func TestE1ErrorsInTheStream(t *testing.T) {
	chatError := func(kind, code string) string {
		return `data: {"error":{"message":"told by the provider","type":"` + kind + `","param":null,"code":` + code + "}}\n\n"
	}
	type shape struct {
		name  string
		event string
	}
	passing := map[string][]shape{
		"chat": {
			{"error object", chatError("server_error", "null")},
			{"numeric code", chatError("", "502")},
			{"error string", "data: {\"error\":\"upstream exploded\"}\n\n"},
			{"error in a chunk", `data: {"id":"one","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502,"message":"told by the provider"}}` + "\n\n"},
			{"event: error", event("error", `{"error":{"message":"told by the provider","type":"internal_server_error"}}`)},
			{"finish error", fr("one", "error")},
			{"no resources", fr("one", "insufficient_system_resource")},
			{"vllm object", `data: {"object":"error","message":"told by the provider","type":"InternalServerError","code":500}` + "\n\n"},
			{"rate limit", chatError("rate_limit_error", `"rate_limit_exceeded"`)},
		},
		"messages": {
			{"overloaded", errEvent("overloaded_error")},
			{"api error", errEvent("api_error")},
			{"timeout", errEvent("timeout_error")},
			{"rate limit", errEvent("rate_limit_error")},
			{"error string", event("error", `{"type":"error","error":"upstream exploded"}`)},
		},
	}
	final := map[string][]shape{
		"chat": {
			{"context overflow", chatError("invalid_request_error", `"context_length_exceeded"`)},
			{"content policy", chatError("invalid_request_error", `"content_policy_violation"`)},
			{"quota", chatError("insufficient_quota", `"insufficient_quota"`)},
			{"authentication", chatError("authentication_error", "null")},
		},
		"messages": {
			{"invalid request", errEvent("invalid_request_error")},
			{"authentication", errEvent("authentication_error")},
			{"permission", errEvent("permission_error")},
			{"billing", errEvent("billing_error")},
		},
	}
	each(t, func(t *testing.T, w wire) {
		good := w.begin("two") + w.text("two", "CD") + w.end("two")
		for _, s := range passing[w.name] {
			t.Run(s.name+" before content", func(t *testing.T) {
				w.play(t, fin(w.begin("one"), w.ping, s.event), fin(good)).hits(2).
					planned("r4_whole_restart(nothing_visible)").exactly(good)
			})
			t.Run(s.name+" after content", func(t *testing.T) {
				w.play(t, fin(w.begin("one")+w.text("one", "AB"), s.event), fin(good)).hits(2).
					because(interrupt.Provider5xxMidStream).planned("r1_continue_text(text)").message("ABCD", w.stop).lacks("told by").lacks("exploded")
			})
		}
		for _, s := range final[w.name] {
			t.Run(s.name+" before content", func(t *testing.T) {
				p := w.play(t, fin(w.begin("one"), s.event)).hits(1).planned("refuse(permanent)").because(interrupt.Permanent)
				p.has(1, data(s.event))
				if p.End != relay.Abort {
					t.Errorf("ended %v", p.End)
				}
			})
			t.Run(s.name+" after content", func(t *testing.T) {
				w.play(t, fin(w.begin("one")+w.text("one", "AB"), s.event)).hits(1).planned("refuse(permanent)").
					broken("failed:permanent").has(1, data(s.event))
			})
		}
		t.Run("after the finish nothing is an error", func(t *testing.T) {
			s := passing[w.name][0].event
			all := w.begin("one") + w.text("one", "AB") + w.end("one")
			cut := strings.LastIndex(strings.TrimSuffix(all, "\n\n"), "\n\n") + 2
			w.play(t, fin(all[:cut], s)).hits(1).planned().exactly(all)
		})
	})
}

// data is the payload of an event.
func data(event string) string {
	_, d, _ := strings.Cut(event, "data: ")
	return strings.TrimSpace(d)
}

// E2: without the top-level type one SDK fails validation and another reads past
// the error and ends normally.
func TestE2OurOwnErrorEventIsWellFormed(t *testing.T) {
	want := map[string]string{
		"chat":     `data: {"error":{"message":"the provider's stream was interrupted (connection_reset; not recovered: budget_spent)","type":"upstream_error","param":null,"code":"stream_interrupted"}}` + "\n\n",
		"messages": stop(0) + event("error", `{"type":"error","error":{"type":"api_error","message":"the provider's stream was interrupted (cause: connection_reset, not recovered: budget_spent)"}}`),
	}
	each(t, func(t *testing.T, w wire) {
		cut := w.begin("one") + w.text("one", "AB")
		p := w.playWith(t, relay.Config{Recoveries: -1}, rst(cut)).hits(1).broken("failed:budget_spent")
		if got := strings.TrimPrefix(string(p.Body), cut); got != want[w.name] {
			t.Errorf("error event\n%s\nwant\n%s", got, want[w.name])
		}
	})
}

// E3: a provider's failure hidden in a benign finish.
func TestE3FailureInABenignFinish(t *testing.T) {
	for _, native := range []string{"network_error", "error"} {
		t.Run(native, func(t *testing.T) {
			hidden := `data: {"id":"one","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop","native_finish_reason":"` + native + `"}]}` + "\n\n"
			p := chatWire.play(t, fin(role("one")+oc("one", "AB")+hidden+done), fin(role("two")+oc("two", "CD")+chatWire.end("two"))).hits(2)
			p.because(interrupt.Provider5xxMidStream).message("ABCD", "stop").lacks(native)
		})
	}
}

// E5: retries were configured and not wired to the streaming path. One policy: the
// same fault costs the same, told by status or inside the stream.
func TestE5OnePolicyBeforeAndInsideTheStream(t *testing.T) {
	overloaded := map[string]string{
		"chat":     `data: {"error":{"message":"busy","type":"server_error","code":529}}` + "\n\n",
		"messages": errEvent("overloaded_error"),
	}
	each(t, func(t *testing.T, w wire) {
		for _, budget := range []int{1, 2, 3} {
			t.Run(fmt.Sprintf("%d recoveries", budget), func(t *testing.T) {
				c := relay.Config{Recoveries: budget}
				var status, inside []relaytest.Reply
				for range budget + 1 {
					status = append(status, refusal(529, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`))
					inside = append(inside, fin(w.begin("x"), overloaded[w.name]))
				}
				a := w.playWith(t, c, status...).hits(budget + 1)
				b := w.playWith(t, c, inside...).hits(budget + 1)
				if x, y := fmt.Sprint(a.Plans()), fmt.Sprint(b.Plans()); x != y {
					t.Errorf("by status %s, inside the stream %s", x, y)
				}
				a.answered(529, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`)
				b.answered(529, "")
				if !a.Head.Final || !b.Head.Final {
					t.Error("the SDK is not told that our tries are spent")
				}
			})
		}
	})
}

// E6: the error says what broke and why it was not healed, and the notes agree.
func TestE6TheErrorSaysWhy(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		for reason, story := range map[string]wire{
			"no_manner": w,
			"logprobs":  chatWire.with(`"logprobs":true`),
		} {
			t.Run(reason, func(t *testing.T) {
				c := relay.Config{Targets: []relay.Target{{Name: "none"}}}
				if reason != "no_manner" {
					c = relay.Config{}
				}
				p := story.playWith(t, c, hang(story.begin("one")+story.text("one", "AB"))).hits(1).planned("refuse(" + reason + ")")
				p.broken("failed:"+reason).has(1, "idle_stall").has(1, "not recovered: "+reason)
				for _, n := range p.Notes {
					if n.Kind == relay.NoteEnd && (n.Cause.Kind != interrupt.IdleStall || n.Summary.Recoveries != 0 || n.Summary.Attempts != 1) {
						t.Errorf("end note %+v", n)
					}
				}
			})
		}
	})
}
