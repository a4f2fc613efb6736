package agents

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/faultinject"
)

// The task. Its tool call leaves a line behind each time it runs, and the answer
// tells how many there were.
const (
	task    = "Append a line to runs.log with your shell tool, count its lines, and tell me the number."
	runsLog = "runs.log"
	command = `echo ran >> ` + runsLog + ` && wc -l < ` + runsLog
)

// answer is what the model says in the end, if that is what the tool printed.
func answer(printed string) string {
	return `Done. The command printed "` + printed + `", which is what was asked for. Nothing else needs to be changed.`
}

// calls is the call to make, in the words of each agent's shell tool.
var calls = []faultinject.ToolCall{
	{Name: "Bash", Args: `{"command":"` + command + `","description":"append a line and count"}`},
	{Name: "bash", Args: `{"command":"` + command + `","description":"append a line and count"}`},
	{Name: "run_shell_command", Args: `{"command":"` + command + `","description":"append a line and count"}`},
	{Name: "exec_command", Args: `{"cmd":"` + command + `"}`},
	{Name: "exec", Args: "const ran = await tools.exec_command({cmd: \"" + command + "\"});\ntext(ran.output);"},
}

// newProvider starts the model: it calls the tool once and then answers.
func newProvider(t *testing.T, scenario, seam string) *faultinject.Server {
	t.Helper()
	p, err := faultinject.New(faultinject.Config{Scenario: scenario, Seam: faultinject.Seam{Name: seam}, Calls: calls})
	if err != nil {
		t.Fatal(err)
	}
	p.Start()
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// bill is what a run cost at the provider.
type bill struct {
	requests int // for an answer; streamed or not
	prompt   int // bytes of all their bodies
	whole    int // of the answered requests, those that did not ask for a stream
	manners  []string
}

// billOf adds up what came to the faults, and what of it came through to the
// model behind them. That the model refused something is an error: it refuses
// what the real one does, so either somebody is wrong or the test is.
func billOf(t *testing.T, faults []line, model []faultinject.Exchange) (b bill) {
	t.Helper()
	for _, l := range faults {
		b.requests++
		b.prompt += l.Prompt
	}
	for _, x := range model {
		if x.Refusal != nil {
			t.Errorf("the provider refused %s %s: %v\nbeta: %s\n%s", x.Method, x.Path, x.Refusal, x.Header.Get("Anthropic-Beta"), clip(x.Body))
		}
		if !answers(x.Path) {
			continue
		}
		if !streams(x) {
			b.whole++
		}
		if x.Continuation.Manner != faultinject.Fresh {
			b.manners = append(b.manners, string(x.Continuation.Manner))
		}
	}
	return b
}

// streams reports whether an answer was asked for in pieces.
func streams(x faultinject.Exchange) bool {
	return bytes.Contains(x.Body, []byte(`"stream":true`)) || strings.Contains(x.Path, ":stream")
}

// answers reports whether a path asks for an answer, and not, say, for a count.
func answers(path string) bool {
	path, _, _ = strings.Cut(path, "?")
	return strings.HasSuffix(path, "/messages") || strings.HasSuffix(path, "/responses") || strings.HasSuffix(path, "/completions") ||
		strings.HasSuffix(path, "enerateContent")
}

// clip shortens a body to what helps: its beginning and its end, where the
// messages are.
func clip(body []byte) string {
	const most = 1500
	if len(body) <= 2*most {
		return string(body)
	}
	return fmt.Sprintf("%s … %d bytes … %s", body[:most], len(body)-2*most, body[len(body)-most:])
}
