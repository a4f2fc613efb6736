package relay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
)

// Attempts, budget, back-off, answers that are no stream (DESIGN §5, §7).

const busy = `{"error":{"message":"busy","type":"server_error","code":"overloaded"}}`

// A recovery that delivers new content earns one back, so that a provider that
// keeps cutting but keeps going is carried through, up to a bound.
func TestNewContentEarnsARecoveryBack(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		var cuts []relaytest.Reply
		want := ""
		for i := range 40 {
			word := fmt.Sprintf("word%d ", i)
			cuts = append(cuts, rst(w.begin("x")+w.text("x", word)))
			want += word
		}
		p := w.play(t, cuts...).hits(3 + 10 + 1)
		p.broken("failed:budget_spent")
		if got := p.Plans()[len(p.Plans())-1]; got != "refuse(budget_spent)" {
			t.Errorf("last plan %s", got)
		}
		if s, _, _ := relaytest.Fold(w.d, mustParse(w.d, []byte(w.request)), p.Body); !strings.HasPrefix(want, string(s.Prose())) || len(s.Prose()) < len("word0 ")*13 {
			t.Errorf("carried through to %q", s.Prose())
		}
		// Without content nothing is earned.
		w.play(t, cuts[0], rst(w.begin("x")), rst(w.begin("x")), rst(w.begin("x"))).hits(4).broken("failed:budget_spent")
	})
}

func TestRetryAfterIsALowerBound(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		good := w.begin("two") + w.text("two", "hi") + w.end("two")
		date := time.Unix(1_800_000_000, 0).Add(7 * time.Second).UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
		for name, c := range map[string]struct {
			header, value string
			least, most   time.Duration
		}{
			"seconds":      {"Retry-After", "7", 7 * time.Second, 8 * time.Second},
			"milliseconds": {"retry-after-ms", "1500", 1500 * time.Millisecond, 2 * time.Second},
			"date":         {"Retry-After", date, 6 * time.Second, 8 * time.Second},
			"none":         {"X-None", "", 0, 300 * time.Millisecond},
		} {
			t.Run(name, func(t *testing.T) {
				p := w.play(t, refusal(429, busy, c.header, c.value), fin(good)).hits(2).exactly(good)
				if gap := p.Requests[1].At.Sub(p.Requests[0].At); gap < c.least || gap > c.most {
					t.Errorf("waited %v, want %v to %v", gap, c.least, c.most)
				}
			})
		}
		t.Run("too long", func(t *testing.T) {
			p := w.play(t, refusal(429, busy, "Retry-After", "287441")).hits(1).planned("refuse(retry_after_too_long)").answered(429, busy)
			if p.Head.Upstream.Get("retry-after") != "287441" {
				t.Error("the hint is lost")
			}
		})
		t.Run("behind content", func(t *testing.T) {
			p := w.play(t, rst(w.begin("one")+w.text("one", "AB")), refusal(429, busy, "Retry-After", "7"), fin(w.begin("two")+w.text("two", "CD")+w.end("two"))).hits(3)
			p.message("ABCD", w.stop)
			if gap := p.Requests[2].At.Sub(p.Requests[1].At); gap < 7*time.Second {
				t.Errorf("waited %v", gap)
			}
		})
		t.Run("waiting budget", func(t *testing.T) {
			slow := refusal(503, busy, "Retry-After", "50")
			w.play(t, slow, slow, slow).hits(3).planned("r4_whole_restart(nothing_visible)", "r4_whole_restart(nothing_visible)", "refuse(wait_spent)").answered(503, busy)
		})
	})
}

func TestBackOffGrowsAndIsReproducible(t *testing.T) {
	down := unreachable(true)
	gaps := func(seed uint64) []time.Duration {
		p := chatWire.playWith(t, relay.Config{Seed: seed, Recoveries: 8, Watch: interrupt.Config{}}, down, down, down, down, down, down, down, down, down).hits(9)
		var out []time.Duration
		for i := 1; i < len(p.Requests); i++ {
			gap := p.Requests[i].At.Sub(p.Requests[i-1].At)
			if top := min(8*time.Second, 250*time.Millisecond<<(i-1)); gap > top {
				t.Errorf("seed %d: retry %d waited %v, more than %v", seed, i, gap, top)
			}
			out = append(out, gap)
		}
		return out
	}
	if a, b := fmt.Sprint(gaps(1)), fmt.Sprint(gaps(1)); a != b {
		t.Errorf("the same seed waited %s and %s", a, b)
	}
	if a, b := fmt.Sprint(gaps(1)), fmt.Sprint(gaps(2)); a == b {
		t.Errorf("no jitter: %s", a)
	}
	// The first recovery of a stream that was flowing goes at once.
	p := chatWire.play(t, rst(role("one")+oc("one", "AB")), fin(role("two")+oc("two", "CD")+chatWire.end("two")))
	if gap := p.Requests[1].At.Sub(p.Requests[0].At); gap > 10*time.Millisecond {
		t.Errorf("waited %v", gap)
	}
}

func TestStatusesBeforeTheStream(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		good := w.begin("two") + w.text("two", "hi") + w.end("two")
		for _, status := range []int{408, 409, 429, 500, 502, 503, 504, 520, 524, 529} {
			t.Run(fmt.Sprint(status), func(t *testing.T) {
				w.play(t, refusal(status, busy), fin(good)).hits(2).exactly(good)
			})
		}
		for _, status := range []int{400, 401, 403, 404, 413, 422} {
			t.Run(fmt.Sprint(status), func(t *testing.T) {
				answer := `{"error":{"message":"no","type":"invalid_request_error"}, "extra" : [1,2]}`
				p := w.play(t, refusal(status, answer, "X-Request-Id", "req_1")).hits(1).answered(status, answer)
				if p.Head.Final || p.Head.Upstream.Get("x-request-id") != "req_1" {
					t.Errorf("head %+v", p.Head)
				}
			})
		}
		t.Run("no connection", func(t *testing.T) { w.play(t, unreachable(true), fin(good)).hits(2).exactly(good) })
		t.Run("no connection at all", func(t *testing.T) {
			down := unreachable(true)
			p := w.play(t, down, down, down, down).hits(4).answered(502, "")
			if !p.Head.Final || p.Head.Upstream != nil || p.Head.ContentType != "application/json" {
				t.Errorf("head %+v", p.Head)
			}
		})
		t.Run("the first refusal is what the client is told", func(t *testing.T) {
			first := `{"error":{"message":"first"}}`
			w.play(t, refusal(503, first), refusal(500, busy), unreachable(false), refusal(502, busy)).hits(4).answered(503, first)
		})
		t.Run("unless a final word follows", func(t *testing.T) {
			last := `{"error":{"message":"no such model","type":"invalid_request_error"}}`
			w.play(t, refusal(503, busy), refusal(404, last)).hits(2).answered(404, last)
		})
		t.Run("a long error body is handed on", func(t *testing.T) {
			long := strings.Repeat("<p>no</p>", 20<<10)
			p := w.play(t, refusal(404, long)).hits(1)
			if p.Head.Status != 404 || !p.Head.Raw || string(p.Body) != long {
				t.Errorf("head %+v, %d bytes", p.Head, len(p.Body))
			}
		})
	})
}

// FIELD-REPORTS F23: what answers instead of a stream.
func TestAnswersThatAreNoStream(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		good := w.begin("two") + w.text("two", "hi") + w.end("two")
		t.Run("a page", func(t *testing.T) {
			w.play(t, fin("\n<!DOCTYPE html><title>Sign in</title>"), fin(good)).hits(2).because(interrupt.EmptyAnswer).exactly(good)
		})
		t.Run("a page, every time", func(t *testing.T) {
			page := fin("<html>")
			w.play(t, page, page, page, page).hits(4).answered(502, "")
		})
		t.Run("a document", func(t *testing.T) {
			doc := `{"id":"x","choices":[]}`
			w.play(t, fin(doc[:5], doc[5:])).hits(1).answered(200, doc)
		})
		t.Run("a document that tells an error", func(t *testing.T) {
			w.play(t, fin(`{"type":"error","error":{"type":"api_error","message":"down"}}`), fin(good)).hits(2).exactly(good)
			no := `{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`
			w.play(t, fin(no)).hits(1).answered(200, no)
		})
		t.Run("a cut document", func(t *testing.T) {
			w.play(t, rst(`{"id":"x","cho`), fin(good)).hits(2).exactly(good)
		})
		t.Run("a page in the middle", func(t *testing.T) {
			w.play(t, rst(w.begin("one")+w.text("one", "AB")), fin("<html>"), fin(w.begin("two")+w.text("two", "CD")+w.end("two"))).hits(3).message("ABCD", w.stop)
		})
		t.Run("a document in the middle", func(t *testing.T) {
			w.play(t, rst(w.begin("one")+w.text("one", "AB")), fin(`{"a":1}`), fin(w.begin("two")+w.text("two", "CD")+w.end("two"))).hits(3).message("ABCD", w.stop)
		})
		t.Run("one byte at a time", func(t *testing.T) { w.play(t, bytewise(good)).hits(1).exactly(good) })
	})
}

// A request without stream has nothing visible until it is whole.
func TestNonStreamingIsRetriedWhole(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		whole := w.without(t, "stream")
		answer := `{"id":"one","content":"hi"}`
		whole.play(t, fin(answer)).hits(1).answered(200, answer)
		whole.play(t, rst(answer[:9]), fin(answer)).hits(2).answered(200, answer)
		whole.play(t, refusal(503, busy), unreachable(true), fin(answer)).hits(3).answered(200, answer)
		whole.play(t, hang(answer[:9]), fin(answer)).hits(2).because(interrupt.IdleStall).answered(200, answer)
		down := rst(answer[:9])
		if p := whole.play(t, down, down, down, down).hits(4).answered(502, ""); !p.Head.Final {
			t.Errorf("head %+v", p.Head)
		}
		s := run(t, whole, relay.Config{MaxWhole: 10})
		s.open(200)
		s.feed(answer)
		if s.head == nil || !s.head.Raw || s.got != answer {
			t.Errorf("an answer over the bound is not streamed through: %+v %q", s.head, s.got)
		}
		s.feed("more")
		s.break_(interrupt.EOF)
		if s.got != answer+"more" || s.end != relay.Clean {
			t.Errorf("%q, ended %v", s.got, s.end)
		}
	})
}
