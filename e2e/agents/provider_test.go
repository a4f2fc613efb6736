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
	task    = "Append a line to runs.log with the Bash tool, count its lines, and tell me the number."
	runsLog = "runs.log"
	command = `echo ran >> ` + runsLog + ` && wc -l < ` + runsLog
	answer  = `Done. The command printed "1", which is what was asked for. Nothing else needs to be changed.`
)

// newProvider starts the model: it calls Bash once and then answers.
func newProvider(t *testing.T, scenario, seam string) *faultinject.Server {
	t.Helper()
	p, err := faultinject.New(faultinject.Config{
		Scenario: scenario,
		Seam:     faultinject.Seam{Name: seam},
		Calls:    []faultinject.ToolCall{{Name: "Bash", Args: `{"command":"` + command + `","description":"append a line and count"}`}},
	})
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
	whole    int // of them, not streamed
	prompt   int // bytes of all their bodies
	largest  int // bytes of the largest body
	manners  []string
}

// billOf adds a provider's log up. That it refused something is an error: it
// refuses what the real one does, so either the agent is wrong or the test is.
func billOf(t *testing.T, log []faultinject.Exchange) (b bill) {
	t.Helper()
	for _, x := range log {
		if x.Refusal != nil {
			t.Errorf("the provider refused %s %s: %v\nbeta: %s\n%s", x.Method, x.Path, x.Refusal, x.Header.Get("Anthropic-Beta"), clip(x.Body))
		}
		if path, _, _ := strings.Cut(x.Path, "?"); !strings.HasSuffix(path, "/messages") {
			continue
		}
		b.requests++
		if !bytes.Contains(x.Body, []byte(`"stream":true`)) {
			b.whole++
		}
		b.prompt += len(x.Body)
		b.largest = max(b.largest, len(x.Body))
		if x.Continuation.Manner != faultinject.Fresh {
			b.manners = append(b.manners, string(x.Continuation.Manner))
		}
	}
	return b
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
