package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	sdk "github.com/openai/openai-go/v3/responses"

	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
)

// A Responses stream is cut behind each of its events in turn, in front of the
// strict provider and the official client: the client ends with the response it
// gets without a cut, and the provider refuses none of what the proxy asks.
func TestResponsesHealBehindEveryEvent(t *testing.T) {
	for _, scenario := range []string{"text", "unicode", "whitespace", "thinking", "web-search", "tool", "custom-tool", "thinking-tool"} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			var lanes [12]lane // as many, because each paces its recoveries
			for i := range lanes {
				// A pause of a busy machine must not be one more cut, at a place of its own choice.
				s, f := faulty(t, "attempt *: pass", "h1", relayed(func(c *relay.Config) { c.Watch = interrupt.Config{} }))
				lanes[i] = lane{openai.NewClient(option.WithAPIKey("k"), option.WithBaseURL("http://"+s.addr+"/v1"), option.WithMaxRetries(0)), f, scenario}
			}
			kinds, whole, err := lanes[0].read(t.Context(), "attempt *: pass")
			if err != nil {
				t.Fatal(err)
			}
			var all sync.WaitGroup
			for i, l := range lanes {
				all.Go(func() {
					for n := 1 + i; n < len(kinds); n += len(lanes) {
						_, got, err := l.read(t.Context(), fmt.Sprintf("attempt 1: fin after event %d", n))
						if strings.Contains(kinds[n-1], "web_search_call") && !strings.Contains(kinds[n-1], ".done") {
							// What a provider's tool was doing cannot be told (DESIGN §3).
							if err == nil || !strings.Contains(err.Error(), "hosted_tool:web_search_call") {
								t.Errorf("cut after %d, %s: %q %v", n, kinds[n-1], got, err)
							}
							continue
						}
						want := whole
						if strings.Contains(kinds[n], "annotation") { // the phrase was said, its source is lost
							got, want = uncited(got), uncited(want)
						}
						if err != nil || got != want {
							t.Errorf("cut after %d, %s: %v\n%s\nwant\n%s", n, kinds[n-1], err, got, want)
						}
					}
				})
			}
			all.Wait()
			requests := 0
			for _, l := range lanes {
				for _, x := range l.provider.Log() {
					if requests++; x.Status != http.StatusOK {
						t.Errorf("refused: %v of %s", x.Refusal, x.Body)
					}
				}
			}
			t.Logf("%d cuts, %d requests", len(kinds)-1, requests)
		})
	}
}

// lane is a client, a proxy and a provider of its own.
type lane struct {
	client   openai.Client
	provider *faultinject.Server
	scenario string
}

// read streams one response under a script: the type of each event and of the
// item in it, and what the last one shows.
func (l lane) read(ctx context.Context, script string) (kinds []string, final string, err error) {
	st := l.client.Responses.NewStreaming(ctx, param.Override[sdk.ResponseNewParams](json.RawMessage(
		`{"model":"gpt-5.1","input":"Say it","reasoning":{"summary":"auto"},"include":["reasoning.encrypted_content"]}`)),
		option.WithHeader(faultinject.HeaderScenario, l.scenario), option.WithHeader(faultinject.HeaderScript, script), option.WithHeader(faultinject.HeaderTurn, script))
	defer st.Close()
	var e sdk.ResponseStreamEventUnion
	for st.Next() {
		if e = st.Current(); int(e.SequenceNumber) != len(kinds) {
			return kinds, "", fmt.Errorf("%s has sequence_number %d, want %d", e.Type, e.SequenceNumber, len(kinds))
		}
		kinds = append(kinds, e.Type+" "+e.Item.Type)
	}
	if st.Err() != nil {
		return kinds, "", st.Err()
	}
	final, err = showing(e.Response.RawJSON())
	return kinds, final, err
}

// showing is what a client makes of a final response: its status, what is
// shown, the phrases that are cited, and what is to be run. Reasoning is left
// out: what was cut in it cannot be gone on with (DESIGN §3). So is white space
// at the end, of which the model that is asked for the rest says there is none.
func showing(raw string) (string, error) {
	var r struct {
		Status string
		Output []struct {
			Type, Name, Arguments, Input string
			Status                       string
			Content                      []struct {
				Type, Text  string
				Annotations []struct {
					Start int `json:"start_index"`
					End   int `json:"end_index"`
					URL   string
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(raw), &r); err != nil {
		return "", fmt.Errorf("%w of %q", err, raw)
	}
	out := r.Status
	for _, it := range r.Output {
		if it.Type == "reasoning" {
			continue
		}
		out += fmt.Sprintf("\n%s %s %s %q %q", it.Type, it.Status, it.Name, it.Arguments, it.Input)
		for _, p := range it.Content {
			out += fmt.Sprintf("\n\t%s %q", p.Type, strings.TrimRight(p.Text, "\n"))
			for _, a := range p.Annotations {
				phrase := "beyond the text"
				if chars := []rune(p.Text); a.End <= len(chars) && a.Start < a.End {
					phrase = string(chars[a.Start:a.End])
				}
				out += fmt.Sprintf("\n\t\t%s: %q", a.URL, phrase)
			}
		}
	}
	return out, nil
}

// uncited leaves the cited phrases out.
func uncited(shown string) string {
	lines := strings.Split(shown, "\n")
	return strings.Join(slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "\t\t") }), "\n")
}
