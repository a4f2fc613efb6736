package agents

import "time"

// The models: one that takes a prefill, one that has to be asked to go on, and one
// that in addition cannot be kept from thinking.
const (
	prefills = "claude-sonnet-4-5"
	asked    = "claude-opus-4-8"
	thinks   = "claude-fable-5"
)

// breakage is a way in which the provider's streams break.
type breakage struct {
	name   string
	script string
	hits   int // streams that it has to break; 0 without a script
	model  string
	seam   string // how the model joins what it is asked to continue
	thinks bool   // before everything it says
	limit  time.Duration
}

// Scripts that several runs share.
const (
	head      = "every stream: fin after event 1 once"
	inText    = "every stream: fin in text 4 once"
	inCall    = "every stream: fin inside tool-args 2 once"
	resetCall = "every stream: rst inside tool-args 2 once"
	overload  = "every stream: error overloaded in text 4 once"
	silence   = "every stream: stall 300s in text 4 once"
	always    = "attempt *: rst at start"
)

// alone is what the agent gets to see directly. Silence would take it ten
// minutes: that run shows what it has achieved when it is stopped.
var alone = []breakage{
	{name: "cut once after the head", script: head, hits: 2},
	{name: "cut once in the text", script: inText, hits: 2},
	{name: "cut once in the tool call", script: inCall, hits: 1},
	{name: "reset once in the tool call", script: resetCall, hits: 1},
	{name: "overloaded once in the text", script: overload, hits: 2},
	{name: "silent once in the text", script: silence, hits: 1, limit: 20 * time.Second},
	{name: "cut every time", script: always, hits: 1, limit: 40 * time.Second},
}

// behind is what unbroken has to hide.
var behind = []breakage{
	{name: "no fault"},
	{name: "cut once after the head", script: head, hits: 2},
	{name: "cut once in the text", script: inText, hits: 2},
	{name: "cut once inside an event", script: "every stream: half inside text 3 once", hits: 2},
	{name: "cut once in the tool call", script: inCall, hits: 1},
	{name: "cut once before the finish", script: "every stream: polite before finish once", hits: 2},
	{name: "reset once in the text", script: "every stream: rst in text 4 once", hits: 2},
	{name: "reset once in the tool call", script: resetCall, hits: 1},
	{name: "overloaded once before the stream", script: "every stream: status 529 retry-after 1 once", hits: 2},
	{name: "overloaded once in the text", script: overload, hits: 2},
	{name: "silent once in the text", script: silence, hits: 2},
	{name: "empty once", script: "every stream: empty once", hits: 2},
	{name: "cut three times in the text", script: "attempt 1-3: fin in text 3", hits: 6},

	{name: "cut once in the text, no prefill", script: inText, hits: 2, model: asked},
	{name: "cut once in the text, no prefill, starts over", script: inText, hits: 2, model: asked, seam: "restart"},
	{name: "cut once in the tool call, no prefill", script: inCall, hits: 1, model: asked},

	{name: "cut once in the text, after reasoning", script: inText, hits: 2, thinks: true},
	{name: "cut once in the tool call, after reasoning", script: inCall, hits: 1, model: asked, thinks: true},
	{name: "cut once in the reasoning", script: "every stream: rst in thinking 4 once", hits: 2, model: thinks, thinks: true},
}

// hopeless is what unbroken cannot hide.
var hopeless = breakage{name: "cut every time", script: always, hits: 1}

// thinkingAgent is the scenario of a model that thinks; see package faultinject.
const thinkingAgent = "thinking-agent"

func (b breakage) scenario() string {
	if b.thinks {
		return thinkingAgent
	}
	return "auto"
}

func (b breakage) withDefaults() breakage {
	if b.model == "" {
		b.model = prefills
	}
	if b.limit == 0 {
		b.limit = time.Minute
	}
	return b
}

func (b breakage) faults(target string) []string {
	args := []string{"faults", "--listen", "127.0.0.1:0", "--pace", "2ms", "--log-format", "json", "--target", target}
	if b.script != "" {
		args = append(args, "-e", b.script)
	}
	return args
}

// serve is unbroken with the patience of a test for a silent provider.
func serve(target string) []string {
	return []string{"serve", "--listen", "127.0.0.1:0", "--admin", "off", "--idle", "2s", "--log-format", "json", "--upstream", "anthropic=" + target}
}
