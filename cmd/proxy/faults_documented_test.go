package main

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/faultinject"
)

// What the README has a newcomer type must break something. Its first line asked for a
// break behind an event that the default answer does not have, so that all was well, and
// nothing was to be seen.
func TestFaultsOfTheReadmeBreakWhatTheyAreAsked(t *testing.T) {
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^unbroken faults -e '([^']*)'(?: --scenario (\S+))?`).FindAllStringSubmatch(string(page), -1)
	if len(lines) < 2 {
		t.Fatalf("the README has %d such lines", len(lines))
	}
	for _, l := range lines {
		t.Run(l[1], func(t *testing.T) {
			scenario := l[2]
			if scenario == "" {
				scenario = "auto"
			}
			s, err := faultinject.New(faultinject.Config{Scenario: scenario, Script: faultinject.MustScript(l[1])})
			if err != nil {
				t.Fatal(err)
			}
			s.Start()
			defer s.Close()
			for _, ask := range []struct{ path, body string }{
				{"/v1/chat/completions", `{"model":"gpt-4.1","stream":true,"messages":[{"role":"user","content":"Tell me a story"}]}`},
				{"/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":500,"stream":true,"messages":[{"role":"user","content":"Tell me a story"}]}`},
			} {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+ask.path, strings.NewReader(ask.body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer k"}, "X-Api-Key": {"k"}, "Anthropic-Version": {"2023-06-01"}}
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(res.Body)
				res.Body.Close()
				if res.StatusCode != http.StatusOK || err == nil {
					t.Errorf("%s was answered %d, and ended well: %s", ask.path, res.StatusCode, body)
				}
			}
		})
	}
}
