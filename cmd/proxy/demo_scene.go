package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/unbroken-llm/unbroken/relay"
)

// scene is one turn that breaks.
type scene struct {
	provider string // as a person calls it
	turn     string
	dialect  string
	model    string
	scenario string // what the model says
	script   string // what goes wrong
	// fewer: a call that was cut is left out, to be issued again in the next
	// turn, rather than waited for (DESIGN §3, R2).
	fewer bool
}

var scenes = []scene{
	{"OpenAI Chat Completions", "text", dialectChat, "gpt-4.1", "text", "attempt 1: rst after text 16", false},
	{"OpenAI Chat Completions", "tool", dialectChat, "gpt-4.1", "tool", "attempt 1: polite after tool-args 6", false},
	{"Anthropic Messages", "text", dialectMessages, "claude-sonnet-4-5", "text", "attempt 1: error overloaded after text 20", false},
	{"Anthropic Messages", "tool", dialectMessages, "claude-sonnet-4-5", "parallel", "attempt 1: cut after tool 2", true},
}

func (sc scene) title() string { return sc.provider + ", " + sc.turn + " turn" }

// result is a scene's outcome.
type result struct {
	scene   scene
	ref     *message // the turn without any fault
	direct  *message
	proxied *message
}

// play runs a scene: unseen without a fault, to know what is right, then
// directly, then through the proxy.
func (sc scene) play(ctx context.Context, st *stage, to display) (*result, error) {
	r := &result{scene: sc}
	r.ref = talk(ctx, sc.prompt(st.direct(), "uncut", "every stream: pass; pace 0s"), func(string) {})
	if r.ref.err != nil {
		return nil, fmt.Errorf("the simulated provider failed by itself: %w", r.ref.err)
	}
	to.start(straight)
	r.direct = talk(ctx, sc.prompt(st.direct(), "direct", sc.script), to.say)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx) // somebody has seen enough
	}
	to.verdict(r.direct.ended, r.directly()+": "+reason(r.direct))

	to.start(healing)
	var turns sync.Mutex // the proxy tells while the client hears
	st.notes.begin(func(far []relay.Note) {
		turns.Lock()
		defer turns.Unlock()
		to.tell(sc.story(far))
	})
	defer st.notes.begin(unheard) // a client that has left is noted later
	r.proxied = talk(ctx, sc.prompt(st.through(), "healed", sc.script), func(piece string) {
		turns.Lock()
		defer turns.Unlock()
		to.say(piece)
	})
	notes, err := st.notes.whole(ctx)
	if err != nil {
		return nil, err
	}
	to.tell(append(sc.story(notes), r.bill(notes)))
	if r.healed() {
		to.verdict(true, r.praise())
	} else {
		to.verdict(false, r.through()+": "+reason(r.proxied))
	}
	return r, nil
}

// story tells what the proxy did about the interruption, as far as it has come.
func (sc scene) story(notes []relay.Note) (list []fact) {
	for _, n := range notes {
		switch n.Kind {
		case relay.NoteInterrupted:
			plan := n.Plan.Kind.String()
			if n.Plan.Kind.Upstream() {
				plan += fmt.Sprintf(" (%s)", n.Manner)
			}
			list = append(list, fact{"cut", n.Cause.Kind.String()}, fact{"plan", plan})
		case relay.NoteSeam:
			list = append(list, fact{"seam", n.Reason})
		case relay.NoteHealed:
			list = append(list, fact{"gap", fmt.Sprintf("%d ms", n.Gap.Milliseconds())})
		case relay.NoteAttempt, relay.NoteDemoted, relay.NoteUnprotected, relay.NoteEnd:
		}
	}
	return list
}

// bill compares what was paid again with what a retry of the turn pays again.
func (r *result) bill(notes []relay.Note) fact {
	paid := "nothing"
	for _, n := range notes {
		switch {
		case n.Kind == relay.NoteInterrupted && n.Plan.Kind.Upstream():
			paid = "the prompt, uncounted"
		case n.Kind == relay.NoteEnd && n.Summary.Repaid > 0:
			paid = fmt.Sprintf("%d input, 0 output tokens", n.Summary.Repaid)
		}
	}
	return fact{"paid again", fmt.Sprintf("%s; a full retry: %d input, %d output", paid, r.ref.input, r.direct.tokens)}
}

// healed reports whether the turn that came through the proxy is right.
func (r *result) healed() bool {
	got, want := r.proxied, r.ref
	if !got.ended || got.err != nil || got.text != want.text || got.finish != want.finish || len(got.calls) == 0 && len(want.calls) > 0 {
		return false
	}
	for i, c := range got.calls {
		if i >= len(want.calls) || c.name != want.calls[i].name || c.args != want.calls[i].args || !json.Valid([]byte(c.args)) {
			return false
		}
	}
	return r.scene.fewer || len(got.calls) == len(want.calls)
}

func (r *result) praise() string {
	if missing := len(r.ref.calls) - len(r.proxied.calls); missing > 0 {
		return fmt.Sprintf("whole: %d complete call to run; the one that was cut never looked runnable", len(r.proxied.calls))
	}
	return "whole: equal to the uninterrupted turn"
}

// directly and through are the two cells of the comparison.
func (r *result) directly() string {
	if r.direct.ended {
		return "whole"
	}
	return fmt.Sprintf("broken after %d tokens", r.direct.tokens)
}

func (r *result) through() string {
	switch {
	case r.healed():
		return "whole"
	case r.proxied.ended:
		return "not what was said"
	}
	return fmt.Sprintf("broken after %d tokens", r.proxied.tokens)
}

func reason(m *message) string {
	if m.err != nil {
		return m.err.Error()
	}
	return "it ended normally"
}

// prompt is the scene's request. Each way to the provider is a turn of its own
// there, so that each meets the same fault.
func (sc scene) prompt(base, way, script string) prompt {
	turn := strings.Join([]string{sc.dialect, sc.turn, way}, "-")
	p := prompt{dialect: sc.dialect, base: base, header: faultHeaders(turn, sc.scenario, script)}
	user := object{"role": "user", "content": demoQuestion}
	if sc.dialect == dialectChat {
		p.body = object{
			"model": sc.model, "stream": true, "stream_options": object{"include_usage": true},
			"messages": []object{{"role": "system", "content": demoSystem}, user},
			"tools":    []object{{"type": "function", "function": object{"name": demoTool, "parameters": demoSchema}}},
		}
		return p
	}
	p.body = object{
		"model": sc.model, "stream": true, "max_tokens": 1024, "system": demoSystem, "messages": []object{user},
		"tools": []object{{"name": demoTool, "input_schema": demoSchema}},
	}
	return p
}

type object map[string]any

const (
	demoSystem = "You are the assistant of a travel agency. You answer questions of guests about places, weather and ways, " +
		"briefly and in a friendly tone. You look the weather up before you talk about it. You never invent an opening hour. " +
		"If a guest asks for something that you do not know, you say so and name the desk that does."
	demoQuestion = "What is the weather like, and what would you tell a guest about the evening?"
	demoTool     = "get_weather"
)

var demoSchema = object{
	"type":       "object",
	"properties": object{"location": object{"type": "string"}, "unit": object{"type": "string", "enum": []string{"celsius", "fahrenheit"}}},
	"required":   []string{"location"},
}
