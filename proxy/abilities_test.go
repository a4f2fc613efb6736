package proxy

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/turn"
)

func TestAbilities(t *testing.T) {
	base, _ := url.Parse("https://api.anthropic.com")
	o := newOrigin(Upstream{Name: "anthropic"}, base)
	a := newAbilities()
	const spoken, old, other = "messages", "claude-sonnet-4-5", "claude-3-opus"
	if got := a.of(o, spoken, old).Manners; !slices.Equal(got, []turn.Manner{turn.Prefill, turn.Asked}) {
		t.Fatalf("the table says %v", got)
	}
	a.demote(o, spoken, old, turn.Prefill)
	a.demote(o, spoken, old, turn.Prefill)
	if got := a.of(o, spoken, old).Manners; !slices.Equal(got, []turn.Manner{turn.Asked}) {
		t.Errorf("after a rejection: %v", got)
	}
	if got := a.of(o, spoken, other).Manners; len(got) != 2 {
		t.Errorf("another model lost its manner: %v", got)
	}
	if got := a.of(o, "chat", old).Manners; len(got) != 2 {
		t.Errorf("another dialect lost its manner: %v", got)
	}
	for i := range 2 * maxLearned {
		a.demote(o, spoken, fmt.Sprint("model", i), turn.Prefill)
	}
	if len(a.learned) > maxLearned {
		t.Errorf("%d things are remembered", len(a.learned))
	}
	for i := range 2 * maxLearned {
		a.of(o, spoken, fmt.Sprint("model", i))
	}
	if a.of(o, spoken, strings.Repeat("m", maxModel+1)); len(a.found) != maxLearned {
		t.Errorf("%d answers are remembered", len(a.found))
	}
	if n := testing.AllocsPerRun(100, func() { a.of(o, spoken, "model8000") }); n != 0 {
		t.Errorf("an answer of before takes %v allocations", n)
	}
	o = newOrigin(Upstream{Name: "x", Abilities: []dialect.AbilityRule{{Ability: dialect.Ability{Echoes: true}}}}, base)
	if !a.of(o, spoken, other).Echoes {
		t.Error("configuration does not come first")
	}
}

// A 400 that names prefill costs no recovery and is remembered for the next turn.
func TestRejectedPrefillIsLearned(t *testing.T) {
	said := "The quick brown fox jumps over the lazy dog and runs into"
	cut := func(a *asked) { a.stream(); a.chunks(ms(), mt(said)); a.rst() }
	on := func(a *asked) { a.stream(); a.chunks(ms(), mt(said[len(said)-40:]+" the woods."), me()); a.end() }
	p := newProvider(t, cut, func(a *asked) {
		a.answer(400, `{"type":"error","error":{"type":"invalid_request_error","message":"This model does not support assistant message prefill. The conversation must end with a user message."}}`)
	}, on, cut, on)
	s := start(t, p)
	for i, hits := range []int{3, 5} {
		got, err := allOf(dial(t, s.addr).post("/v1/messages", messagesAsk).response())
		if err != nil || text(t, got) != said+" the woods." || p.hits() != hits {
			t.Fatalf("turn %d: %q, %v, %d requests", i, text(t, got), err, p.hits())
		}
	}
	if last := p.seen[4]; !strings.Contains(string(last.body), `"role":"user"`) || strings.HasSuffix(strings.TrimRight(string(last.body), "]} "), said) {
		t.Errorf("the rejected manner was used again: %s", last.body)
	}
}
