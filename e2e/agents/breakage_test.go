package agents

import "time"

// breakage is a way in which the provider's streams break.
type breakage struct {
	name   string
	script string
	hits   int // streams that it has to break; 0 without a script
	model  string
	seam   string // how the model joins what it is asked to continue
	thinks bool   // before everything it says
	limit  time.Duration
	tries  int // requests of an agent's that cannot succeed

	idle    time.Duration // see errand
	patient bool          // unbroken waits longer than the silence lasts
}

// Scripts that several runs share.
const (
	head      = "every stream: fin after event 1 once"
	inText    = "every stream: fin in text 4 once"
	inEvent   = "every stream: half inside text 3 once"
	inCall    = "every stream: fin inside tool-args 2 once"
	atFinish  = "every stream: polite before finish once"
	resetText = "every stream: rst in text 4 once"
	resetCall = "every stream: rst inside tool-args 2 once"
	overload  = "every stream: error overloaded in text 4 once"
	silence   = "every stream: stall 300s in text 4 once"
	thrice    = "attempt 1-3: fin in text 3"
	always    = "attempt *: rst at start"
)

// thinkingAgent is the scenario of a model that thinks; see package faultinject.
const thinkingAgent = "thinking-agent"

func (b breakage) scenario() string {
	if b.thinks {
		return thinkingAgent
	}
	return "auto"
}

func (b breakage) withDefaults(a agent) breakage {
	if b.model == "" {
		b.model = a.model
	}
	if b.limit == 0 {
		b.limit = 5 * time.Minute // a machine with more to do
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

// serve is unbroken with the patience of a test for a silent provider: a short
// one, unless it is the silence that is to be bridged.
func (b breakage) serve(target string) []string {
	args := []string{"serve", "--listen", "127.0.0.1:0", "--admin", "off", "--log-format", "json"}
	if b.patient {
		args = append(args, "--heartbeat", "500ms")
	} else {
		args = append(args, "--idle", "2s")
	}
	for _, name := range []string{"openai", "anthropic", "gemini"} {
		args = append(args, "--upstream", name+"="+target)
	}
	return args
}
