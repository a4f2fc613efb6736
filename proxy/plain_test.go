package proxy

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint/storetest"
	"github.com/unbroken-llm/unbroken/ledger"
	ledgertest "github.com/unbroken-llm/unbroken/ledger/storetest"
)

// plainAnswers are the ordinary answers of a dialogue's turns: one call, then words.
var plainAnswers = map[string][2]string{
	"chat": {
		`{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}}]},"finish_reason":"tool_calls"}]}`,
		`{"id":"y","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Fine."},"finish_reason":"stop"}]}`,
	},
	"messages": {
		`{"id":"x","type":"message","role":"assistant","content":[{"type":"text","text":"A"},{"type":"tool_use","id":"c1","name":"look","input":{"at":1}}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}`,
		`{"id":"y","type":"message","role":"assistant","content":[{"type":"text","text":"Fine."}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}}`,
	},
	"responses": {
		`{"id":"resp_1","object":"response","status":"completed","output":[{"id":"fc_c1","type":"function_call","status":"completed","call_id":"c1","name":"look","arguments":"{\"at\":1}"}],"usage":null}`,
		`{"id":"resp_2","object":"response","status":"completed","output":[{"id":"m","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"Fine."}]}],"usage":null}`,
	},
	"gemini": {
		`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"c1","name":"look","args":{"at":1}}}]},"finishReason":"STOP","index":0}],"responseId":"g1"}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"Fine."}]},"finishReason":"STOP","index":0}],"responseId":"g2"}`,
	},
}

// unstreamed is a request of a dialogue that asks for no stream.
func (c *dialogue) unstreamed(body string) string {
	return strings.Replace(c.withTools(c.plain(body)), `"stream":true,`, "", 1)
}

func (c *dialogue) unstreamedPath() string {
	return strings.Replace(c.path, ":streamGenerateContent?alt=sse", ":generateContent", 1)
}

// TestRunsAreLearnedFromOrdinaryAnswers: an agent that neither streams nor knows of the
// ledger has its run, by its history alone; the bytes that it gets are the provider's,
// also where the provider had to be asked twice.
func TestRunsAreLearnedFromOrdinaryAnswers(t *testing.T) {
	for _, c := range dialogues {
		t.Run(c.name, func(t *testing.T) {
			answers := plainAnswers[c.name]
			say := func(i int) func(*asked) {
				return func(a *asked) { a.answer(200, answers[i], "Content-Type: application/json") }
			}
			p := newProvider(t, func(a *asked) { a.answer(503, `{"error":{"message":"busy"}}`) }, say(0), say(1))
			b := &books{T: t, Memory: ledger.NewMemory(ledger.MemoryConfig{Clock: time.Now})}
			s := start(t, p, withGemini(p), patient(b))
			ask := func(body string) string {
				t.Helper()
				answer, err := allOf(dial(t, s.addr).post(c.unstreamedPath(), c.unstreamed(body), ann, "Connection: close").response())
				if err != nil {
					t.Fatal(err)
				}
				return answer
			}
			if got := ask(c.first); got != answers[0] {
				t.Errorf("the client has %s", got)
			}
			r := b.only()
			step := r.Open()
			if step == nil || len(step.Calls) != 1 || step.Calls[0].ID != "c1" || step.Calls[0].Name != "look" || step.Calls[0].Args != ledger.Sum([]byte(`{"at":1}`)) {
				t.Fatalf("after the first turn: %s", ledger.Encode(r))
			}
			if got := ask(c.second); got != answers[1] {
				t.Errorf("the client has %s", got)
			}
			r = b.only()
			if r.State != ledger.Ended || r.Cause != ledger.Completed || len(r.Steps) != 2 || r.Steps[0].Calls[0].State != ledger.Done {
				t.Fatalf("after the second: %s", ledger.Encode(r))
			}
			if n := s.Stats().Unledgered; n != 0 {
				t.Errorf("%d facts were not taken", n)
			}
		})
	}
}

// TestOrdinaryAnswersThatAreNoTurn are not recorded as one. An error says that there is
// none; of a text that nobody can read nobody knows.
func TestOrdinaryAnswersThatAreNoTurn(t *testing.T) {
	c := dialogues[0]
	for _, tt := range []struct {
		name, answer string
		status       int
		want         ledger.Advice
	}{
		{"an error", `{"error":{"message":"no"}}`, 400, ledger.NextStep},
		{"an error under a good status", `{"error":{"message":"no"}}`, 200, ledger.Unknown},
		{"half an answer", `{"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"and"},"finish_reason":null}]}`, 200, ledger.Unknown},
		{"a page", `<html>`, 200, ledger.Unknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newProvider(t, func(a *asked) { a.answer(tt.status, tt.answer, "Content-Type: application/json") })
			b := &books{T: t, Memory: ledger.NewMemory(ledger.MemoryConfig{Clock: time.Now})}
			s := start(t, p, patient(b))
			b.who, _ = s.ScopeOf(http.Header{"Authorization": {"Bearer ann"}})
			b.tell("job-7", ledger.Begin{ID: "job-7"})
			if answer, err := allOf(dial(t, s.addr).post(c.path, c.unstreamed(c.first), ann, "X-Run-Id: job-7", "Connection: close").response()); err != nil || answer != tt.answer {
				t.Fatalf("%s, %v", answer, err)
			}
			eventually(t, "nothing is in flight", func() bool { return s.Stats().Live == 0 })
			eventually(t, "the run says so", func() bool {
				r := b.only()
				return len(r.Steps) == 0 && ledger.Recover(r, ledger.Asker{}).Advice == tt.want && (tt.want == ledger.Unknown || len(r.Pending) == 0)
			})
		})
	}
}

// TestATurnThatWasMissedIsInTheRecord as soon as the store takes it: whoever asks then,
// in whatever process, is told that nobody knows, and why. The next turn ends that.
func TestATurnThatWasMissedIsInTheRecord(t *testing.T) {
	c := dialogues[0]
	p := newProvider(t, func(a *asked) {
		a.stream()
		a.chunks(c.broken[0], c.broken[1], fr("tool_calls"), done)
		a.end()
	})
	b := &books{T: t, Memory: ledger.NewMemory(ledger.MemoryConfig{Clock: time.Now})}
	store := &ledgertest.Faulty{Store: b.Memory}
	s := start(t, p, patient(b), func(cfg *Config) { cfg.Ledger = store })
	b.who, _ = s.ScopeOf(http.Header{"Authorization": {"Bearer ann"}})
	b.tell("job-7", ledger.Begin{ID: "job-7"})
	// When the turn is asked for, when it ends, and once more.
	store.Fail(storetest.Before, storetest.Before, storetest.After)
	c.ask(t, s, p, c.withTools(c.first), ann, "X-Run-Id: job-7")
	unknown := func() bool {
		r := b.only()
		return len(r.Steps) == 0 && ledger.Recover(r, ledger.Asker{}).Advice == ledger.Unknown
	}
	eventually(t, "the record says that a turn is missing", unknown)
	eventually(t, "the process need not remember it", func() bool { return !s.missed.has(ledger.Key(b.who, "job-7")) })
	c.ask(t, s, p, c.withTools(strings.Replace(c.first, "Go", "Go on", 1)), ann, "X-Run-Id: job-7")
	if r := b.only(); r.Open() == nil || len(r.Pending) != 0 {
		t.Errorf("%s", ledger.Encode(r))
	}
}

// TestAnInferenceUnderWayIsInTheRecord: a sidecar that dies during a turn leaves a
// record that says so to any other; one that lives, and whose client left before the
// turn had ended, takes it back.
func TestAnInferenceUnderWayIsInTheRecord(t *testing.T) {
	c := dialogues[0]
	goOn := make(chan struct{})
	defer close(goOn)
	p := newProvider(t, func(a *asked) {
		a.stream()
		a.chunks(c.broken[0], c.broken[1])
		<-goOn
	})
	b := &books{T: t, Memory: ledger.NewMemory(ledger.MemoryConfig{Clock: time.Now})}
	s := start(t, p, patient(b))
	b.who, _ = s.ScopeOf(http.Header{"Authorization": {"Bearer ann"}})
	b.tell("job-7", ledger.Begin{ID: "job-7"})
	client := dial(t, s.addr)
	client.post(c.path, c.withTools(c.first), ann, "X-Run-Id: job-7")
	eventually(t, "the turn is under way", func() bool { return len(b.only().Pending) == 1 })
	if a := ledger.Recover(b.only(), ledger.Asker{}); a.Advice != ledger.Unknown {
		t.Errorf("another process is told %s: %s", a.Advice, a.Reason)
	}
	_ = client.c.Close()
	eventually(t, "the next inference is due", func() bool {
		return ledger.Recover(b.only(), ledger.Asker{}).Advice == ledger.NextStep
	})
}
