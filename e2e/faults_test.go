package e2e

import (
	"slices"
	"strings"

	"github.com/unbroken-llm/unbroken/faultinject"
)

// fault is a row of the matrix.
type fault struct {
	name   string
	script string // CUT stands for the scenario's place
	via    via
	on     []faultinject.Dialect // nil: all
	in     []string              // scenarios; empty: all

	want     verdict // 0: what the scenario says of a cut
	orRefuse bool    // where a cut would be healed, nothing is there to heal it
	kept     int     // calls that survive tool use; 0: as the scenario says
	requests int     // to the provider; 0: as the verdict says
	status   int     // of a refusal
	// uncounted: these have their usage behind the finish, and lost it; it is not
	// ours to invent.
	uncounted []faultinject.Dialect
	comments  bool // SSE comments are part of it, or something else that Google never sends
}

var (
	anyPlain = []string{"text"}                                                // where the scenario makes no difference
	plain    = []string{"text", "tool"}                                        // where it makes little
	texts    = []string{"text", "unicode"}                                     // continued by prefill, and by asking
	asked    = []string{"unicode"}                                             // continued by asking, in both dialects
	calls    = []string{"tool", "parallel"}                                    // end in calls
	wholes   = []string{"tool", "parallel", "thinking and tool", "structured"} // in calls, or in a whole document
	moments  = []string{"text", "tool", "thinking and tool"}                   // in text, in a call, in thought
)

var (
	onlyChat      = []faultinject.Dialect{faultinject.Chat}
	onlyResponses = []faultinject.Dialect{faultinject.Responses}
	onlyGemini    = []faultinject.Dialect{faultinject.Gemini}
	onlyInvoke    = []faultinject.Dialect{faultinject.Invoke}
	framed        = []faultinject.Dialect{faultinject.Converse, faultinject.Invoke}                                         // frames with checksums
	marked        = []faultinject.Dialect{faultinject.Chat, faultinject.Messages, faultinject.Converse, faultinject.Invoke} // a marker follows the finish
	usageLast     = []faultinject.Dialect{faultinject.Chat, faultinject.Converse}                                           // usage follows the finish
	usageIsEnd    = []faultinject.Dialect{faultinject.Converse}                                                             // and nothing follows it
	oneEnd        = []faultinject.Dialect{faultinject.Responses, faultinject.Gemini}                                        // the finish is the last event
)

const all = -1

var faults = slices.Concat(cuts, silences, frames, inBand, overStatus, hollow, harmless, endings, seams)

// cuts end the connection or the stream in the middle.
var cuts = []fault{
	{name: "rst", script: "attempt 1: pace 4ms; rst CUT"},
	{name: "fin", script: "attempt 1: fin CUT"},
	{name: "polite end", script: "attempt 1: polite CUT"},
	{name: "half an event, rst", script: "attempt 1: pace 4ms; half with rst CUT"},
	{name: "half an event, fin", script: "attempt 1: half with fin CUT"},
	{name: "half an event, polite end", script: "attempt 1: half with polite CUT"},
	{name: "inside a prelude, rst", script: "attempt 1: pace 4ms; half with rst keeping 7 CUT", on: framed},
	{name: "inside a prelude, polite end", script: "attempt 1: half with polite keeping 7 CUT", on: framed},
	{name: "behind a prelude, fin", script: "attempt 1: half with fin keeping 12 CUT", on: framed},
	{name: "wrong checksum", script: "attempt 1: bad-crc CUT; fin before finish", on: framed},
	{name: "wrong checksum of the lengths", script: "attempt 1: bad-crc prelude CUT; fin before finish", on: framed},
	{name: "close-delimited body", script: "attempt 1: eof10 CUT"},
	{name: "content-length not reached", script: "attempt 1: length; fin CUT"},
	{name: "rst inside gzip", script: "attempt 1: pace 4ms; gzip; rst CUT"},
	{name: "fin inside brotli", script: "attempt 1: br; fin CUT"},
	{name: "trickle, then fin", script: "attempt 1: trickle 9; fin CUT"},
	{name: "rst before headers", script: "attempt 1: rst before headers", in: plain, want: healed},
	{name: "fin before headers", script: "attempt 1: fin before headers", in: plain, want: healed},
	{name: "rst after headers", script: "attempt 1: rst at start", in: plain, want: healed},
	{name: "polite end after headers", script: "attempt 1: polite at start", in: plain, want: healed},
	{name: "rst after the first event", script: "attempt 1: rst after event 1", in: plain, want: healed},
	{name: "rst, continued by a prefill", script: "attempt 1: pace 4ms; rst CUT", via: prefilling, on: onlyChat},
	{name: "rst twice", script: "attempt 1: pace 4ms; rst CUT | attempt 2: rst after text 2", in: texts, want: healed, requests: 3},
	{name: "rst before the finish", script: "attempt 1: pace 4ms; rst before finish", in: texts, want: healed},
	{name: "rst in the text before a call", script: "attempt 1: rst after text 2", in: calls, want: healed},
	{name: "rst before the finish of calls", script: "attempt 1: pace 4ms; rst before finish", in: calls, want: toolUse, kept: all},
	{name: "rst after thinking", script: "attempt 1: rst after text 2", in: []string{"thinking and tool"}, want: healed},
	{name: "rst, then 500 for good", script: "attempt 1: pace 4ms; rst CUT | attempt 2+: status 500", orRefuse: true},
	{name: "polite end, then rst for good", script: "attempt 1: polite CUT | attempt 2+: rst at start", orRefuse: true},
}

// silences need a clock to be noticed.
var silences = []fault{
	{name: "stall", script: "attempt 1: stall CUT", via: hasty},
	{name: "only pings from here on", script: "attempt 1: pings every 50ms CUT", via: hasty, in: moments},
	{name: "only comments from here on", script: "attempt 1: keepalives every 50ms CUT", via: hasty, in: moments, comments: true},
	{name: "stall before headers", script: "attempt 1: stall before headers", via: hasty, in: anyPlain, want: healed},
	{name: "stall after headers", script: "attempt 1: stall at start", via: hasty, in: anyPlain, want: healed},
	{name: "stall after the first event", script: "attempt 1: stall after event 1", via: hasty, in: anyPlain, want: healed},
	{name: "slow, bridged by heartbeats", script: "attempt 1: stall 250ms CUT", via: hasty, in: plain, want: passed},
}

// frames are HTTP/2's ways to end.
var frames = []fault{
	{name: "h2 rst", script: "attempt 1: pace 4ms; rst CUT", via: overHTTP2},
	{name: "h2 fin", script: "attempt 1: fin CUT", via: overHTTP2},
	{name: "h2 polite end", script: "attempt 1: polite CUT", via: overHTTP2},
	{name: "h2 RST_STREAM", script: "attempt 1: reset-stream CUT", via: overHTTP2},
	{name: "h2 RST_STREAM after headers", script: "attempt 1: reset-stream at start", via: overHTTP2, in: plain, want: healed},
	{name: "h2 REFUSED_STREAM", script: "attempt 1: refused", via: overHTTP2, in: plain, want: healed},
	{name: "h2 GOAWAY", script: "attempt 1: goaway CUT", via: overHTTP2},
	{name: "h2 GOAWAY before headers", script: "attempt 1: goaway before headers", via: overHTTP2, in: plain, want: healed},
	{name: "h2 GOAWAY covering the stream", script: "attempt 1: goaway covering CUT", via: overHTTP2, want: passed},
}

// inBand are errors inside a 200.
var inBand = []fault{
	{name: "in-band overloaded", script: "attempt 1: error overloaded CUT"},
	{name: "in-band server error", script: "attempt 1: error api CUT"},
	{name: "in-band timeout", script: "attempt 1: error timeout CUT"},
	{name: "in-band unavailable", script: "attempt 1: error unavailable CUT"},
	{name: "in-band rate limit", script: "attempt 1: error rate-limit CUT"},
	{name: "in-band error, named event", script: "attempt 1: error api as named CUT", on: onlyChat},
	{name: "in-band error, then [DONE]", script: "attempt 1: error api as done CUT", on: onlyChat},
	{name: "in-band error in a chunk", script: "attempt 1: error api as chunk CUT", on: onlyChat},
	{name: "finish_reason error", script: "attempt 1: error api as finish CUT", on: onlyChat},
	{name: "insufficient_system_resource", script: "attempt 1: error api as resource CUT", on: onlyChat},
	{name: "in-band error of Groq", script: "attempt 1: error api as groq CUT", on: onlyChat},
	{name: "in-band error, flat", script: "attempt 1: error api as flat CUT", on: onlyResponses},
	{name: "in-band error and no response.failed", script: "attempt 1: error api as alone CUT", on: onlyResponses},
	{name: "response.failed and no error", script: "attempt 1: error api as failed CUT", on: onlyResponses},
	{name: "in-band error, not modelled", script: "attempt 1: error api as raw CUT", on: framed},
	{name: "in-band error of the model in a chunk", script: "attempt 1: error overloaded as chunk CUT", on: onlyInvoke},
	{name: "in-band error outside a frame", script: "attempt 1: error api as raw CUT", on: onlyGemini},
	{name: "in-band error comes first", script: "attempt 1: error overloaded before event 1", in: plain, want: healed},
	{name: "in-band error after the start", script: "attempt 1: error overloaded after event 1", in: plain, want: healed},
	{name: "in-band invalid request", script: "attempt *: error invalid CUT", want: relayed},
	{name: "in-band context overflow", script: "attempt *: error context CUT", want: relayed},
	{name: "in-band policy", script: "attempt *: error policy CUT", want: relayed},
	{name: "in-band authentication", script: "attempt *: error auth CUT", want: relayed},
}

// overStatus are errors in place of a stream.
var overStatus = []fault{
	{name: "408", script: "attempt 1: status 408", in: anyPlain, want: healed},
	{name: "409", script: "attempt 1: status 409", in: anyPlain, want: healed},
	{name: "429", script: "attempt 1: status 429", in: plain, want: healed},
	{name: "429 retry-after", script: "attempt 1: status 429 retry-after 1", in: anyPlain, want: healed},
	{name: "429 retry-after date", script: "attempt 1: status 429 retry-after date 1s", in: anyPlain, want: healed},
	{name: "429 retry-after-ms", script: "attempt 1: status 429 retry-after-ms 40", in: anyPlain, want: healed},
	{name: "429 retry-after an hour", script: "attempt *: status 429 retry-after 3600", in: anyPlain, want: refused, status: 429},
	{name: "500", script: "attempt 1: status 500", in: plain, want: healed},
	{name: "502", script: "attempt 1: status 502", in: anyPlain, want: healed},
	{name: "503 retry-after", script: "attempt 1: status 503 retry-after 1", in: anyPlain, want: healed},
	{name: "504", script: "attempt 1: status 504", in: anyPlain, want: healed},
	{name: "520", script: "attempt 1: status 520", in: anyPlain, want: healed},
	{name: "529", script: "attempt 1: status 529", in: plain, want: healed},
	{name: "529 for good", script: "attempt *: status 529", in: anyPlain, want: refused, status: 529},
	{name: "400", script: "attempt *: status 400", in: plain, want: relayed},
	{name: "401", script: "attempt *: status 401", in: anyPlain, want: relayed},
	{name: "403", script: "attempt *: status 403", in: anyPlain, want: relayed},
	{name: "404", script: "attempt *: status 404", in: anyPlain, want: relayed},
	{name: "413", script: "attempt *: status 413", in: anyPlain, want: relayed},
	{name: "422", script: "attempt *: status 422", in: anyPlain, want: relayed},
}

// hollow are 200s that say nothing, or the wrong thing.
var hollow = []fault{
	{name: "empty 200", script: "attempt 1: empty", in: plain, want: healed},
	{name: "only comments", script: "attempt 1: only-comments", in: plain, want: healed},
	{name: "only [DONE]", script: "attempt 1: only-done", in: plain, want: healed},
	{name: "only blank lines", script: "attempt 1: only-blank", in: plain, want: healed},
	{name: "a web page", script: "attempt 1: html", in: plain, want: healed},
	{name: "a web page for good", script: "attempt *: html", in: anyPlain, want: refused, status: 502},
	{name: "garbage", script: "attempt 1: garbage CUT; fin before finish"},
}

// harmless deviations must not become harmful.
var harmless = []fault{
	{name: "no fault", script: "attempt *: pass", want: passed},
	{name: "no fault over h2", script: "attempt *: pass", via: overHTTP2, want: passed},
	{name: "gzip", script: "attempt *: gzip", want: passed},
	{name: "brotli", script: "attempt *: br", want: passed},
	{name: "trickle", script: "attempt *: trickle 3", in: plain, want: passed},
	{name: "announced length", script: "attempt *: length", want: passed},
	{name: "labelled text/plain", script: "attempt *: content-type text/plain", in: plain, want: passed},
	{name: "labelled application/json", script: "attempt *: content-type application/json", in: plain, want: passed},
	{name: "not labelled", script: "attempt *: content-type none", in: plain, want: passed},
	{name: "a delta twice", script: "attempt *: duplicate text 3", in: plain, want: verbatim},
	{name: "CRLF, rst", script: "attempt 1: variant crlf; rst CUT", in: texts},
	{name: "data: without space, rst", script: "attempt 1: variant no-space; rst CUT", in: texts, comments: true},
	{name: "comments between events, rst", script: "attempt 1: variant comments; rst CUT", in: texts, comments: true},
	{name: "role in every delta, rst", script: "attempt 1: variant role-always; rst CUT", on: onlyChat, in: texts},
	{name: "escaped characters, rst", script: "attempt 1: variant ascii; rst CUT", in: texts},
	{name: "usage on the finish, rst", script: "attempt 1: pace 4ms; rst CUT | attempt 2: variant usage-on-finish", on: onlyChat, in: texts},
	{name: "continuation without [DONE]", script: "attempt 1: pace 4ms; rst CUT | attempt 2: variant no-done", on: onlyChat, in: texts},
}

// endings concern what comes after the finish.
var endings = []fault{
	{name: "finish, then only comments", script: "attempt 1: warm every 50ms", in: moments, want: finished, uncounted: usageLast, comments: true},
	{name: "rst after the finish", script: "attempt 1: pace 4ms; rst after finish", want: finished, uncounted: usageLast},
	{name: "no terminator", script: "attempt 1: no-terminal", on: marked, want: finished, uncounted: usageIsEnd},
	{name: "no finish behind text", script: "attempt 1: no-terminal", on: oneEnd, in: texts, want: healed},
	{name: "no finish behind a whole", script: "attempt 1: no-terminal", on: oneEnd, in: wholes, want: finished},
	{name: "last event without blank line", script: "attempt 1: no-blank-line", want: finished, uncounted: usageIsEnd},
	{name: "content after the end", script: "attempt 1: after-end", want: finished},
}

// seams are continuations that are not what was asked for.
var seams = []fault{
	{name: "seam: exact", script: "attempt 1: pace 4ms; rst CUT | attempt 2: seam exact", in: texts},
	{name: "seam: repeats the anchor", script: "attempt 1: pace 4ms; rst CUT | attempt 2: seam echo-anchor", in: asked},
	{name: "seam: repeats the tail", script: "attempt 1: pace 4ms; rst CUT | attempt 2: seam echo-tail 30", in: asked},
	{name: "seam: starts again", script: "attempt 1: pace 4ms; rst CUT | attempt 2: seam restart", in: texts},
	{name: "seam: preamble", script: "attempt 1: pace 4ms; rst CUT | attempt 2: seam preamble", in: asked},
	{name: "seam: preamble, starts again", script: "attempt 1: pace 4ms; rst CUT | attempt 2: seam preamble-restart", in: asked},
	{name: "seam: thinks first", script: "attempt 1: pace 4ms; rst CUT | attempt 2: seam thinking-first", in: texts},
	{name: "seam: starts again, differently", script: "attempt 1: rst CUT | attempt 2: seam restart-diverge; fin before finish", in: asked, want: healed, requests: 3},
}

// meets reports whether a client is put to it.
func (f *fault) meets(c client) bool {
	return (f.on == nil || slices.Contains(f.on, c.speaks)) && !(f.comments && c.noComments)
}

// scenarios are those that the nth client tries it in: without -clients.full one of
// those where it occurs, so that neighbours try different ones.
func (f *fault) scenarios(nth int) []*scenario {
	var all []*scenario
	for _, sc := range scenarios {
		if len(f.in) == 0 || slices.Contains(f.in, sc.name) {
			all = append(all, sc)
		}
	}
	if *full {
		return all
	}
	return all[nth%len(all):][:1]
}

// line is the script of a case.
func (f *fault) line(sc *scenario, d faultinject.Dialect) string {
	cut := sc.cut
	if other, ok := sc.cutIn[d]; ok {
		cut = other
	}
	return strings.ReplaceAll(f.script, "CUT", cut)
}

// expect is what must come of a case.
func (f *fault) expect(sc *scenario, d faultinject.Dialect) expectation {
	e := expectation{verdict: f.want, kept: sc.kept, requests: f.requests, status: f.status, atLeast: f.via == hasty}
	if f.kept != 0 {
		e.kept = f.kept
	}
	if e.verdict == asCut {
		e.verdict = sc.then
		if f.orRefuse && e.verdict == healed {
			e.verdict = refused
		}
	}
	if e.requests == 0 {
		switch e.verdict {
		case passed, finished, toolUse:
			e.requests = 1
		case healed:
			e.requests = 2
		}
	}
	return e
}
