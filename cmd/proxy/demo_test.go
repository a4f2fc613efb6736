package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
)

// A turn that does not heal is a failure of the demo, and is shown as one.
func TestDemoFailsWhenATurnDoesNotHeal(t *testing.T) {
	var out bytes.Buffer
	to := newDisplay(environment{out: &written{w: &out}}, false)
	hopeless := scenes[0]
	hopeless.script = "every stream: status 400"
	err := demo(t.Context(), to, 0, []scene{hopeless, scenes[1]})
	if err == nil || err.Error() != "1 of 2 turns did not heal" {
		t.Fatalf("got %v\n%s", err, out.String())
	}
	if want := "✗ broken after 0 tokens: 400 Bad Request"; strings.Count(out.String(), want) != 2 {
		t.Errorf("no %q, directly and through the proxy:\n%s", want, out.String())
	}
}

func TestDemoStopsWhenItIsTold(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("seen enough")
	cancel(enough)
	err := demo(ctx, newDisplay(environment{out: &written{w: &bytes.Buffer{}}}, false), demoPace, scenes)
	if err == nil || strings.Contains(err.Error(), "heal") {
		t.Fatalf("got %v", err)
	}
}

// A demo that was interrupted said so behind half a line of its text.
func TestPlainDemoEndsItsLine(t *testing.T) {
	var out bytes.Buffer
	s := &screen{w: &out, width: plainWidth}
	s.begin(1, 1, scenes[0])
	s.start(healing)
	s.say("The quick bro")
	s.end(nil)
	if got := out.String(); !strings.HasSuffix(got, "The quick bro\n") {
		t.Errorf("it ends with %q", got)
	}
	for line := range strings.Lines(out.String()) {
		if columns(line) > plainWidth {
			t.Errorf("wider than %d: %q", plainWidth, line)
		}
	}
}

// What counts as healed must not be more than the truth.
func TestVerdictOfADemo(t *testing.T) {
	two := []toolCall{{"1", "get_weather", `{"a":1}`}, {"2", "get_weather", `{"a":2}`}}
	ref := &message{text: "Hello", calls: two, finish: "tool_use", ended: true}
	for _, tc := range []struct {
		name   string
		change func(*message)
		fewer  bool
		want   bool
	}{
		{"the same", func(*message) {}, false, true},
		{"other ids", func(m *message) { m.calls[0].id = "9" }, false, true},
		{"text is short", func(m *message) { m.text = "Hell" }, false, false},
		{"text is doubled", func(m *message) { m.text = "HelloHello" }, false, false},
		{"no end", func(m *message) { m.ended = false }, false, false},
		{"an error", func(m *message) { m.err = errNoEnd }, false, false},
		{"another finish", func(m *message) { m.finish = "stop" }, false, false},
		{"a call is missing", func(m *message) { m.calls = m.calls[:1] }, false, false},
		{"a call is left out", func(m *message) { m.calls = m.calls[:1] }, true, true},
		{"every call is left out", func(m *message) { m.calls = nil }, true, false},
		{"half a call", func(m *message) { m.calls[1].args = `{"a":` }, true, false},
		{"a call too many", func(m *message) { m.calls = append(m.calls, two[0]) }, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := *ref
			got.calls = append([]toolCall(nil), two...)
			tc.change(&got)
			r := result{scene: scene{fewer: tc.fewer}, ref: ref, proxied: &got}
			if r.healed() != tc.want {
				t.Errorf("healed: %v, want %v", !tc.want, tc.want)
			}
		})
	}
}

func TestPlainLines(t *testing.T) {
	var b bytes.Buffer
	s := &screen{w: &b, width: 28}
	s.start(straight)
	for _, piece := range []string{"One two", " three fo", "ur\nfive \x1b[2J"} {
		s.say(piece)
		s.tell([]fact{{"cut", "by \x1b]0;title\a"}})
	}
	s.verdict(true, "done")
	want := `
  direct     │ One two three
             │ four
             │ five ␛[2J
             ╎ cut: by ␛]0;title␇
             │ ✓ done
`
	if b.String() != want[1:] {
		t.Errorf("got\n%s", b.String())
	}
}
