package faultinject

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// wireEvent is a Responses event as a client reads it.
type wireEvent struct {
	Type     string
	Seq      int  `json:"sequence_number"`
	Index    *int `json:"output_index"`
	Content  *int `json:"content_index"`
	ItemID   string
	Delta    string
	Text     string
	Part     struct{ Type, Text, Refusal string }
	Item     map[string]any
	Response struct {
		ID, Status string
		Output     []map[string]any
		Usage      *struct {
			Output int `json:"output_tokens"`
		}
		IncompleteDetails *struct{ Reason string } `json:"incomplete_details"`
	}
}

func wireEvents(t *testing.T, events []Event) []wireEvent {
	t.Helper()
	var out []wireEvent
	for _, e := range events {
		data := payloadOf(e.Raw)
		if len(data) == 0 {
			continue
		}
		var w wireEvent
		if err := json.Unmarshal(data, &w); err != nil {
			t.Fatalf("%s: %v", e.Raw, err)
		}
		if name, _, _ := strings.Cut(string(e.Raw), "\n"); strings.TrimSpace(strings.TrimPrefix(name, "event:")) != w.Type {
			t.Fatalf("event %q is named %q", w.Type, name)
		}
		var id struct {
			ID string `json:"item_id"`
		}
		if err := json.Unmarshal(data, &id); err != nil {
			t.Fatal(err)
		}
		w.ItemID = id.ID
		out = append(out, w)
	}
	return out
}

// WIRE 1.2: sequence numbers and output indices without gaps, every item whole
// at its end, the terminal response the sum of them.
func TestResponsesStreamsAreOfOnePiece(t *testing.T) {
	for _, scenario := range ScenarioNames() {
		for _, variant := range []string{"", "obfuscation", "reasoning-text", "comments", "ascii", "multi-data"} {
			a, err := Scenario(scenario, Prompt{Dialect: Responses}, Config{LongTokens: 40})
			if err != nil {
				t.Fatal(err)
			}
			o := Options{Seed: 5}
			if variant != "" {
				if err := o.Variant.Set(variant); err != nil {
					t.Fatal(err)
				}
			}
			t.Run(scenario+"/"+variant, func(t *testing.T) { ofOnePiece(t, wireEvents(t, responsesEvents(a, o))) })
		}
	}
}

func ofOnePiece(t *testing.T, events []wireEvent) {
	t.Helper()
	var done []map[string]any
	open := ""
	for n, e := range events {
		if e.Seq != n {
			t.Fatalf("%s has sequence_number %d, want %d", e.Type, e.Seq, n)
		}
		if e.Index != nil && *e.Index != len(done) {
			t.Fatalf("%s has output_index %d, want %d", e.Type, *e.Index, len(done))
		}
		switch e.Type {
		case "response.output_item.added":
			if open != "" {
				t.Fatalf("%v opens inside %s", e.Item, open)
			}
			open = e.Item["id"].(string)
		case "response.output_item.done":
			if e.Item["id"] != open {
				t.Fatalf("%v closes %s", e.Item, open)
			}
			done, open = append(done, e.Item), ""
		default:
			if e.ItemID != open {
				t.Fatalf("%s is for %q, open is %q", e.Type, e.ItemID, open)
			}
		}
	}
	last := events[len(events)-1]
	if want, got := fmt.Sprint(done), fmt.Sprint(last.Response.Output); got != want || last.Response.Usage == nil || last.Response.Usage.Output < 1 {
		t.Errorf("%s says\n%s\nthe items were\n%s", last.Type, got, want)
	}
	if events[0].Type != "response.created" || events[0].Response.ID != last.Response.ID || "response."+last.Response.Status != last.Type {
		t.Errorf("from %+v to %+v", events[0], last)
	}
}

// FIELD-REPORTS A9: what max_output_tokens cuts is marked, and so is the
// response.
func TestResponsesCutByLength(t *testing.T) {
	for _, tc := range []struct {
		name, kind string
		answer     Answer
	}{
		{"text", "message", say(shortText)},
		{"arguments", "function_call", call(weather("Paris"))},
		{"a custom call", "custom_tool_call", customTool(Prompt{Dialect: Responses}, Config{})},
	} {
		t.Run(tc.name, func(t *testing.T) {
			limited := limit(tc.answer, len(tokens(tc.answer.Text(), 5))/2+7, 5)
			if tc.name == "text" {
				limited = limit(tc.answer, 7, 5)
			}
			events := wireEvents(t, responsesEvents(limited, Options{Seed: 5}))
			ofOnePiece(t, events)
			r := events[len(events)-1].Response
			item := r.Output[len(r.Output)-1]
			if r.Status != "incomplete" || r.IncompleteDetails == nil || r.IncompleteDetails.Reason != "max_output_tokens" || item["status"] != "incomplete" {
				t.Errorf("%+v", r)
			}
			if args, ok := item["arguments"].(string); ok && json.Valid([]byte(args)) {
				t.Errorf("whole arguments %s", args)
			}
		})
	}
	t.Run("filtered", func(t *testing.T) {
		a := say("I would")
		a.Finish = FinishRefusal
		events := wireEvents(t, responsesEvents(a, Options{}))
		if r := events[len(events)-1].Response; r.Status != "incomplete" || r.IncompleteDetails.Reason != "content_filter" {
			t.Errorf("%+v", r)
		}
	})
}

// A citation comes when its phrase was said, and not at all where the phrase
// was cut off.
func TestResponsesAnnotations(t *testing.T) {
	a := webSearch(Prompt{}, Config{})
	said, told := "", 0
	for _, e := range responsesEvents(a, Options{}) {
		var w struct {
			Type, Delta string
			Annotation  struct {
				Start int `json:"start_index"`
				End   int `json:"end_index"`
				URL   string
			}
		}
		if err := json.Unmarshal(payloadOf(e.Raw), &w); err != nil {
			t.Fatal(err)
		}
		switch w.Type {
		case "response.output_text.delta":
			said += w.Delta
		case "response.output_text.annotation.added":
			c := a.Blocks[1].Cites[told]
			if len(said) < w.Annotation.End || said[w.Annotation.Start:w.Annotation.End] != c.Phrase || w.Annotation.URL != c.URL {
				t.Errorf("after %q: %+v", said, w.Annotation)
			}
			told++
		}
	}
	if told != 2 {
		t.Errorf("%d annotations", told)
	}
	a.Blocks[1].Text = a.Blocks[1].Text[:60]
	if got := strings.Count(string(responsesFinal(a, Options{}.withDefaults(responsesPrefix))), `"url_citation"`); got != 1 {
		t.Errorf("%d annotations of the text cut short", got)
	}
}

// The reasoning a caller sees is what it asked for.
func TestResponsesReasoningAsAsked(t *testing.T) {
	a := think(say("Yes."))
	for _, tc := range []struct {
		name, request      string
		summary, encrypted bool
	}{
		{"nothing asked", `{}`, false, false},
		{"a summary", `{"reasoning":{"summary":"auto"}}`, true, false},
		{"encrypted", `{"include":["reasoning.encrypted_content"]}`, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			raw := string(slices.Concat(RenderResponses(a, Options{Request: []byte(tc.request)})...))
			if got := strings.Contains(raw, "reasoning_summary_text.delta"); got != tc.summary {
				t.Errorf("summary %v", got)
			}
			if got := strings.Contains(raw, Seal(a.Blocks[0].Text)); got != tc.encrypted {
				t.Errorf("encrypted %v", got)
			}
			if !strings.Contains(raw, `"type":"reasoning"`) {
				t.Error("no reasoning item")
			}
		})
	}
}

// Servers that rotate ids give no two events the same one.
func TestRotatedIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range wireEvents(t, responsesEvents(think(say(shortText)), Options{Variant: Variant{RotateIDs: true}})) {
		if e.ItemID != "" && e.Delta == "" && seen[e.ItemID] {
			t.Errorf("%s again in %s", e.ItemID, e.Type)
		}
		seen[e.ItemID] = true
	}
	if len(seen) < 8 {
		t.Errorf("%d ids", len(seen))
	}
}

// Our events have the members that recorded ones of the same type have.
func TestResponsesEventsAsRecorded(t *testing.T) {
	root := os.Getenv("UNBROKEN_CORPUS")
	if root == "" {
		root = filepath.Join("..", "..", "shared", "corpus")
	}
	files, err := filepath.Glob(filepath.Join(root, "openai-responses", "*.sse"))
	if err != nil || len(files) == 0 {
		t.Skip("no recordings: set UNBROKEN_CORPUS to the corpus directory")
	}
	recorded := map[string]map[string]bool{} // type -> members ever seen
	always := map[string]map[string]bool{}   // type -> members in every one
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for n := FrameLF.eventLen(raw); n > 0; n = FrameLF.eventLen(raw) {
			typ, members := shapeOf(t, raw[:n])
			raw = raw[n:]
			if _, ok := recorded[typ]; !ok {
				recorded[typ], always[typ] = map[string]bool{}, maps.Clone(members)
			}
			maps.Copy(recorded[typ], members)
			maps.DeleteFunc(always[typ], func(name string, _ bool) bool { return !members[name] })
		}
	}
	compared := 0
	for _, scenario := range ScenarioNames() {
		a, _ := Scenario(scenario, Prompt{Dialect: Responses}, Config{LongTokens: 40})
		for _, e := range responsesEvents(a, Options{}) {
			typ, members := shapeOf(t, e.Raw)
			if recorded[typ] == nil {
				continue
			}
			compared++
			for name := range always[typ] {
				if !members[name] && name != "obfuscation" {
					t.Fatalf("%s lacks %s", typ, name)
				}
			}
			for name := range members {
				if !recorded[typ][name] {
					t.Fatalf("%s has %s, no recorded one does", typ, name)
				}
			}
		}
	}
	t.Logf("%d events of %d recorded types", compared, len(recorded))
}

// shapeOf returns the type of an event and its members, those of its item
// and part included.
func shapeOf(t *testing.T, raw []byte) (string, map[string]bool) {
	t.Helper()
	var e map[string]json.RawMessage
	if err := json.Unmarshal(payloadOf(raw), &e); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	var typ string
	if err := json.Unmarshal(e["type"], &typ); err != nil {
		t.Fatal(err)
	}
	members := map[string]bool{}
	for name := range e {
		members[name] = true
	}
	for _, inner := range []string{"item", "part"} {
		var m map[string]json.RawMessage
		if json.Unmarshal(e[inner], &m) != nil {
			continue
		}
		typ += " " + string(m["type"])
		for name := range m {
			members[inner+"."+name] = true
		}
	}
	return typ, members
}
