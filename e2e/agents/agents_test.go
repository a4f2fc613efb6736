package agents

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// agents are those that make agents installs.
var agents = []agent{claude, codex, codexCode, codexBuiltIn, opencode, gemini}

func TestAgents(t *testing.T) {
	outer := t
	var unbroken string
	for _, a := range agents {
		t.Run(a.name, func(t *testing.T) {
			program := require(t, a)
			if unbroken == "" {
				unbroken = build(outer)
			}
			compare(t, house{agent: a, program: program, unbroken: unbroken})
		})
	}
}

// compare is the whole comparison: an agent at a good provider, alone at one whose
// streams break, and there with unbroken in between.
func compare(t *testing.T, h house) {
	a := h.agent
	good := h.measure(t, "directly", breakage{name: "no fault"})
	if good.run.exit != 0 || good.run.transcript.final != a.answer || good.run.ran != 1 {
		t.Fatalf("without a fault: exit %d, the tool ran %d times, %q\n%s\n%s", good.run.exit, good.run.ran,
			good.run.transcript.final, strings.Join(good.run.transcript.seen, "\n"), good.run.stderr)
	}
	bare, healed := make([]measurement, len(a.alone)), make([]measurement, len(a.behind)+1)
	t.Run("directly", func(t *testing.T) {
		for i, b := range a.alone {
			t.Run(b.name, func(t *testing.T) {
				t.Parallel()
				bare[i] = h.measure(t, "directly", b)
			})
		}
	})
	t.Run("unbroken", func(t *testing.T) {
		for i, b := range a.behind {
			t.Run(b.name, func(t *testing.T) {
				t.Parallel()
				healed[i] = h.measure(t, "unbroken", b)
				unnoticed(t, healed[i], good)
			})
		}
		if a.hopeless.name == "" {
			return
		}
		t.Run(a.hopeless.name, func(t *testing.T) {
			t.Parallel()
			healed[len(a.behind)] = h.measure(t, "unbroken", a.hopeless)
			honest(t, healed[len(a.behind)], good)
		})
	})
	t.Log("\n" + h.table(slices.Concat([]measurement{good}, bare, healed)))
}

// honest demands that a run which cannot succeed fails, and at once: once the
// budget of recoveries is spent, the agent is told not to try again. Alone it
// sends its prompt a dozen times before it gives up.
func honest(t *testing.T, m, good measurement) {
	t.Helper()
	if m.run.late || m.run.exit == 0 || m.run.ran != 0 || m.run.transcript.final == good.run.transcript.final {
		t.Errorf("nothing could be said, but: late %t, exit %d, the tool ran %d times, %q", m.run.late, m.run.exit, m.run.ran, m.run.transcript.final)
	}
	if m.asked != m.tries {
		t.Errorf("the agent sent %d requests after it was told not to: %v", m.asked, m.proxy)
	}
}

// unnoticed demands that a run went as it goes without a fault.
func unnoticed(t *testing.T, m, good measurement) {
	t.Helper()
	r := m.run
	if r.late || r.exit != 0 {
		t.Errorf("exit %d after %s, late: %t\n%s", r.exit, r.took, r.late, r.stderr)
	}
	if r.ran != 1 {
		t.Errorf("the tool ran %d times", r.ran)
	}
	if r.transcript.final != good.run.transcript.final {
		t.Errorf("the answer is %q", r.transcript.final)
	}
	if l := noticed.FindString(r.stderr); l != "" || r.transcript.retries > 0 {
		t.Errorf("the agent told its user of %d retries, and: %s", r.transcript.retries, r.stderr)
	}
	if d := r.transcript.thoughtless().difference(good.run.transcript); d != "" {
		t.Errorf("the agent noticed: %s", d)
	}
	if m.asked != good.asked {
		t.Errorf("the agent sent %d requests, without a fault %d", m.asked, good.asked)
	}
	if t.Failed() {
		for _, l := range m.proxy {
			t.Log(l)
		}
	}
}

// house is where the runs happen.
type house struct {
	agent
	program, unbroken string
}

// measurement is a run and what it took.
type measurement struct {
	setting string
	breakage
	run   run
	bill  bill
	asked int    // requests for an answer that left the agent
	proxy []line // of unbroken, one a stream
}

// measure runs the agent once.
func (h house) measure(t *testing.T, setting string, b breakage) measurement {
	t.Helper()
	b = b.withDefaults(h.agent)
	m := measurement{setting: setting, breakage: b}
	provider := newProvider(t, b.scenario(), b.seam)
	faults := launch(t, h.unbroken, b.faults(provider.URL())...)
	front, proxy := faults, (*process)(nil)
	if setting == "unbroken" {
		proxy = launch(t, h.unbroken, b.serve(faults.url)...)
		front = proxy
	}
	m.run = h.start(t, h.program, errand{base: front.url, model: b.model, thinks: b.thinks, idle: b.idle}, b.limit)
	if proxy != nil {
		m.proxy = with(proxy.lines(t), func(l line) bool { return l.Msg == "stream" || l.Level == "ERROR" })
		m.asked = len(m.proxy)
	}
	exchanges := with(faults.lines(t), func(l line) bool { return answers(l.Path) && l.Status != http.StatusUpgradeRequired })
	if proxy == nil {
		m.asked = len(exchanges)
	}
	// A run that was stopped may not have come to its fault; unnoticed and honest
	// refuse such runs themselves.
	if hit := len(with(exchanges, func(l line) bool { return l.Applied })); hit < b.hits && !m.run.late {
		t.Errorf("the fault hit %d streams, not %d", hit, b.hits)
	}
	m.bill = billOf(t, exchanges, provider.Log())
	return m
}

// table is what make agents prints.
func (h house) table(runs []measurement) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "setting\tstreams\trequests at the provider\tprompt bytes there\ttime\ttool runs\ttokens the agent counts\tresult")
	for _, m := range runs {
		if m.setting == "" { // -run left it out
			continue
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%s\t%d\t%d in, %d out\t%s\n", m.setting, m.name, m.bill.requests, m.bill.prompt,
			m.run.took.Round(100*time.Millisecond), m.run.ran, m.run.transcript.in, m.run.transcript.out, m.result(h.answer))
	}
	_ = w.Flush() // to memory
	return b.String()
}

// result is the last column: how it ended, and what it took.
func (m measurement) result(answer string) string {
	var s string
	switch {
	case m.run.late:
		s = "not done when stopped"
	case m.run.exit != 0:
		s = "FAILED: " + firstWords(m.run.transcript.final)
	case m.run.transcript.final == answer:
		s = "the right answer"
	default:
		s = "ANOTHER ANSWER: " + firstWords(m.run.transcript.final)
	}
	if n := m.bill.whole; n > 0 {
		s += fmt.Sprintf("; %d asked for again without streaming", n)
	}
	if n := m.run.transcript.retries; n > 0 {
		s += fmt.Sprintf("; told its user of %d retries", n)
	}
	for _, manner := range slices.Compact(slices.Sorted(slices.Values(m.bill.manners))) {
		s += "; continued by " + manner
	}
	return s
}

// firstWords is as much of a text as a table has room for.
func firstWords(s string) string {
	if r := []rune(s); len(r) > 70 {
		return string(r[:70]) + "…"
	}
	return s
}
