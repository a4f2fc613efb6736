package e2e

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/unbroken-llm/unbroken/faultinject"
)

// verdict is how a call ended.
type verdict byte

// The verdicts. All but the last three mean the whole message, equal to the
// unfaulted one in text, calls and finish.
const (
	asCut    verdict = 0   // of a fault: what the scenario says of a cut
	passed   verdict = 'p' // as the provider sent it; one request
	finished verdict = 'f' // completed without asking again; one request
	healed   verdict = 'h' // completed by asking again
	toolUse  verdict = 't' // ended as tool use with every complete call; one request
	verbatim verdict = 'v' // what the client makes of it without the proxy, too
	relayed  verdict = 'r' // the failure that the client sees without the proxy, too
	refused  verdict = 'x' // a failure, never a truncated success
	wrong    verdict = '!'
)

const verdictWords = "p passed as sent, f finished locally, h healed by a further request, t ended as tool use, v as without the proxy, r relayed failure, x honest failure, ! wrong"

// outcome is what one case came to.
type outcome struct {
	reply     reply
	exchanges []faultinject.Exchange
}

// expectation is what it is held against.
type expectation struct {
	verdict  verdict
	unbroken message  // of the same client at the provider, without a fault
	direct   *outcome // of the same client at the provider, under the same fault; for verbatim and relayed
	kept     int      // calls that survive tool use, -1 for all
	requests int      // to the provider, 0 for any number
	atLeast  bool     // more are no mistake: on a busy machine a pause may look like silence
	status   int      // of a refusal, 0 for any
}

// problems compares. None means that the verdict holds.
func (e expectation) problems(o outcome) []string {
	var p problems
	switch e.verdict {
	case relayed:
		p.failure(o.reply.Failure, e.direct.reply.Failure)
		p.beginning(o.reply.Message, e.unbroken)
		p.requests(len(o.exchanges), len(e.direct.exchanges))
		return p
	case refused:
		p.refusal(o.reply.Failure, e.status)
		p.beginning(o.reply.Message, e.unbroken)
		p.requests(len(o.exchanges), e.requests)
		return p
	case verbatim:
		if f := e.direct.reply.Failure; f != nil {
			p.failure(o.reply.Failure, f)
		} else {
			p.whole(o.reply, e.direct.reply.Message)
		}
		p.requests(len(o.exchanges), 1)
		return p
	}
	want := e.unbroken
	if e.verdict == toolUse && e.kept >= 0 {
		want.Calls = want.Calls[:e.kept]
	}
	p.whole(o.reply, want)
	if !e.atLeast || len(o.exchanges) < e.requests {
		p.requests(len(o.exchanges), e.requests)
	}
	return p
}

type problems []string

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Sprintf(format, args...)) }

// whole compares a message. Ids are the provider's affair; that there is one for
// each call is not.
func (p *problems) whole(got reply, want message) {
	if got.Failure != nil {
		p.add("failed: %+v", *got.Failure)
	}
	m := got.Message
	if m.Text != want.Text {
		p.add("text is %q, want %q", m.Text, want.Text)
	}
	// A cut in reasoning shows the beginning of it a second time (DESIGN §3, R4).
	if !strings.HasSuffix(m.Reasoning, want.Reasoning) {
		p.add("reasoning is %q, want %q at its end", m.Reasoning, want.Reasoning)
	}
	if m.Finish != want.Finish {
		p.add("finish is %q, want %q", m.Finish, want.Finish)
	}
	if m.Starts != want.Starts {
		p.add("%d starts, want %d", m.Starts, want.Starts)
	}
	if m.Usages != want.Usages {
		p.add("%d records of usage, want %d", m.Usages, want.Usages)
	}
	p.calls(m.Calls, want.Calls)
}

func (p *problems) calls(got, want []call) {
	if len(got) != len(want) {
		p.add("%d calls %v, want %d", len(got), got, len(want))
		return
	}
	ids := map[string]bool{}
	for i, w := range want {
		if got[i].Name != w.Name || got[i].Args != w.Args {
			p.add("call %d is %s(%s), want %s(%s)", i, got[i].Name, got[i].Args, w.Name, w.Args)
		}
		if got[i].ID == "" || ids[got[i].ID] {
			p.add("call %d has the id %q", i, got[i].ID)
		}
		ids[got[i].ID] = true
	}
}

// beginning holds what was shown before a failure against the whole message. No
// call of it may look finished unless it is.
func (p *problems) beginning(got, want message) {
	if !strings.HasPrefix(want.Text, got.Text) {
		p.add("shown before the failure: %q, which is not how %q begins", got.Text, want.Text)
	}
	if got.Finish != "" {
		p.add("finish %q before the failure", got.Finish)
	}
}

func (p *problems) refusal(got *failure, status int) {
	switch {
	case got == nil:
		p.add("no failure")
	case status != 0 && got.Status != status:
		p.add("failed with %+v, want status %d", *got, status)
	}
}

// requestID is what differs between two failures of one kind.
var requestID = regexp.MustCompile(`req_\w+|http://127\.0\.0\.1:\d+`)

func (p *problems) failure(got, want *failure) {
	if got == nil || want == nil {
		p.add("failure is %+v, without the proxy %+v", got, want)
		return
	}
	g, w := *got, *want
	g.Text, w.Text = requestID.ReplaceAllString(g.Text, "…"), requestID.ReplaceAllString(w.Text, "…")
	if g != w {
		p.add("failure is %+v, without the proxy %+v", g, w)
	}
}

func (p *problems) requests(got, want int) {
	if want != 0 && got != want {
		p.add("%d requests to the provider, want %d", got, want)
	}
}
