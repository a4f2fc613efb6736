package proxy

import (
	"testing"

	"github.com/unbroken-llm/unbroken/relay"
)

// An observer is told who a stream is before anything that happens to it, and how it
// ended when nothing more will.
func TestObserverHearsAWholeStream(t *testing.T) {
	said := "one two three four five six seven "
	p := newProvider(t,
		func(a *asked) { a.stream(); a.chunks(oc(said)); a.rst() },
		func(a *asked) { a.stream(); a.chunks(oc(said+"eight"), fr("stop"), done); a.end() },
	)
	s := start(t, p)
	parent := "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if _, err := allOf(dial(t, s.addr).post("/v1/chat/completions", chatAsk, "Traceparent: "+parent).response()); err != nil {
		t.Fatal(err)
	}
	h := s.notes
	eventually(t, "the outcome", func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.ended) == 1
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.begun) != 1 {
		t.Fatalf("%d streams began", len(h.begun))
	}
	b, o := h.begun[0], h.ended[0]
	if b.Dialect != "chat" || b.Upstream != "openai" || b.Trace != parent || b.Run == "" || len(b.Targets) != 1 || b.Targets[0].Upstream != "openai" {
		t.Errorf("began as %+v", b)
	}
	if o.Whose != Completed || o.Token != "healed" || o.Summary.Attempts != 2 || o.At.Before(b.Began) {
		t.Errorf("ended as %+v", o)
	}
	var kinds []relay.NoteKind
	for _, n := range h.notes {
		if kinds = append(kinds, n.Kind); n.Kind == relay.NoteInterrupted && n.Said == 0 {
			t.Error("an interruption does not tell how much was said")
		}
	}
	if kinds[0] != relay.NoteAttempt || kinds[len(kinds)-1] != relay.NoteEnd {
		t.Errorf("notes %v", kinds)
	}
}

// What a client chose is bounded, and text, before anybody prints it.
func TestShownIsBoundedText(t *testing.T) {
	for given, want := range map[string]string{
		"gpt-5": "gpt-5", "a\xffb": "a\uFFFDb", string(make([]byte, 200)): string(make([]byte, 128)),
	} {
		if got := shown(given); got != want {
			t.Errorf("%q is shown as %q", given, got)
		}
	}
	cut := shown(string(make([]byte, 127)) + "é")
	if want := string(make([]byte, 127)) + "\uFFFD"; cut != want {
		t.Errorf("a rune that is cut is shown as %q", cut)
	}
}
