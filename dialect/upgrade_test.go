package dialect_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/anthropic"
	"github.com/unbroken-llm/unbroken/dialect/completions"
	"github.com/unbroken-llm/unbroken/dialect/gemini"
	"github.com/unbroken-llm/unbroken/dialect/openaichat"
	"github.com/unbroken-llm/unbroken/dialect/openairesponses"
	"github.com/unbroken-llm/unbroken/faultinject"
)

// folded is the ordinary answer told from a stream.
func folded(t *testing.T, d dialect.Upgrader, stream []byte) []byte {
	t.Helper()
	f, scan := d.NewFold(), dialect.NewScanner(d, 0)
	scan.Push(stream)
	for e, ok := scan.Next(); ok; e, ok = scan.Next() {
		f.Add(e)
	}
	answer, ok := f.Whole(nil)
	if !ok || !json.Valid(answer) {
		t.Fatalf("no answer (%v): %s\nof %s", ok, answer, stream)
	}
	return answer
}

func decoded(t *testing.T, b []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(b, &v); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return v
}

var spoken = []struct {
	d    dialect.Upgrader
	kind faultinject.Dialect
}{
	{openaichat.Dialect{}, faultinject.Chat},
	{completions.Dialect{}, faultinject.Completions},
	{openairesponses.Dialect{}, faultinject.Responses},
	{anthropic.Dialect{}, faultinject.Messages},
	{gemini.Dialect{}, faultinject.Gemini},
}

// Whatever the provider that streams and answers ordinarily says, both ways are one
// answer: every scenario in every dialect, with one choice and with several.
func TestStreamTellsTheOrdinaryAnswer(t *testing.T) {
	for _, p := range spoken {
		for _, name := range faultinject.ScenarioNames() {
			for _, n := range []int{1, 3} {
				if n > 1 && (p.kind == faultinject.Responses || p.kind == faultinject.Messages) {
					continue
				}
				a, err := faultinject.Scenario(name, faultinject.Prompt{Dialect: p.kind, Model: "gpt-4o"}, faultinject.Config{})
				if err != nil {
					t.Fatal(err)
				}
				o := faultinject.Options{Model: "gpt-4o", ID: "id-1", Created: 1770853433, IncludeUsage: true, N: n, Seed: 7}
				if p.kind == faultinject.Gemini {
					o.Model = "gemini-3-pro"
				}
				stream := bytes.Join(faultinject.Raws(faultinject.Render(p.kind, a, o)), nil)
				got, want := folded(t, p.d, stream), faultinject.RenderWhole(p.kind, a, o)
				if !reflect.DeepEqual(decoded(t, got), decoded(t, want)) {
					t.Errorf("%s, %s, n=%d:\ngot  %s\nwant %s", p.d.Name(), name, n, got, want)
				}
			}
		}
	}
}
