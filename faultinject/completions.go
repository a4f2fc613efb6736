package faultinject

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

const completionPrefix = "cmpl-"

// RenderCompletions returns the stream of a as the legacy completions endpoint
// sends it (WIRE 1.1): text alone, since it has a form for nothing else.
func RenderCompletions(a Answer, o Options) [][]byte { return Raws(completionsEvents(a, o)) }

func completionsEvents(a Answer, o Options) []Event {
	o = o.withDefaults(completionPrefix)
	var events []Event
	add := func(kind Kind, text, finish string) {
		for choice := range o.N {
			usage := ""
			if o.IncludeUsage {
				usage = `,"usage":null`
			}
			events = append(events, Event{kind, frame(o.Variant, "", fmt.Sprintf(`%s"choices":[{"text":%s,"index":%d,"logprobs":null,"finish_reason":%s}]%s}`,
				completionHead(o), text, choice, orNull(finish), usage))})
		}
	}
	for _, p := range pieces(shown(a), o) {
		add(KindText, p, "")
	}
	add(KindFinish, `""`, completionFinish(a.Finish))
	if o.IncludeUsage {
		events = append(events, Event{KindUsage, frame(o.Variant, "", completionHead(o)+`"choices":[],"usage":`+completionUsage(a, o)+`}`)})
	}
	if !o.Variant.NoDone {
		events = append(events, Event{KindEnd, frame(o.Variant, "", "[DONE]")})
	}
	return finishFrames(o.Variant, events)
}

func completionsWhole(a Answer, o Options) []byte {
	o = o.withDefaults(completionPrefix)
	choices := make([]string, o.N)
	for i := range choices {
		choices[i] = fmt.Sprintf(`{"text":%s,"index":%d,"logprobs":null,"finish_reason":%s}`, quote(shown(a)), i, quote(completionFinish(a.Finish)))
	}
	return fmt.Appendf(nil, `%s"choices":[%s],"usage":%s}`, completionHead(o), strings.Join(choices, ","), completionUsage(a, o))
}

func completionHead(o Options) string {
	return fmt.Sprintf(`{"id":%s,"object":"text_completion","created":%d,"model":%s,`, quote(o.ID), o.Created, quote(o.Model))
}

func completionUsage(a Answer, o Options) string {
	a.Blocks = []Block{text(shown(a))}
	u := a.usage(o)
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, u.In, u.Out, u.In+u.Out)
}

func completionFinish(f Finish) string {
	switch f {
	case FinishLength:
		return "length"
	case FinishRefusal:
		return "content_filter"
	default:
		return "stop"
	}
}

// shown is everything of a that is text.
func shown(a Answer) string {
	var b strings.Builder
	for _, k := range a.Blocks {
		if k.Kind == TextBlock || k.Kind == RefusalBlock {
			b.WriteString(k.Text)
		}
	}
	return b.String()
}

// completionRequest is the body of POST /v1/completions.
type completionRequest struct {
	Model      string
	Prompt     json.RawMessage
	Stream     bool
	MaxTokens  int `json:"max_tokens"`
	N          int
	BestOf     int `json:"best_of"`
	Echo       bool
	Suffix     string
	Stop       json.RawMessage
	StreamOpts *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// promptText is the one prompt of a request; lists of texts and of tokens are
// not played.
func (r completionRequest) promptText() (string, bool) {
	var one string
	if json.Unmarshal(r.Prompt, &one) == nil {
		return one, true
	}
	var list []string
	if json.Unmarshal(r.Prompt, &list) == nil && len(list) == 1 {
		return list[0], true
	}
	return "", false
}

// checkCompletion refuses what OpenAI refuses of this endpoint, in its words.
func checkCompletion(r completionRequest) *Refusal {
	_, ok := r.promptText()
	switch {
	case r.Model == "":
		return invalid("you must provide a model parameter")
	case !ok:
		return invalidParam("prompt", "Invalid type for 'prompt': expected a string, or an array of one string.")
	case r.StreamOpts != nil && !r.Stream:
		return invalidParam("stream_options", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	case r.Stream && r.BestOf > 1 && r.BestOf > r.N:
		return invalid("Cannot stream results with best_of > n.")
	case r.Echo && r.Suffix != "":
		return invalid("Cannot have both echo and suffix.")
	}
	return nil
}

// promptLog remembers the prompts whose answer is not over: a prompt that begins
// with one of them, and goes on as its answer does, continues it. There is no
// other sign of that on this wire.
type promptLog struct {
	mu   sync.Mutex
	seen map[string]bool
}

// note remembers a prompt.
func (l *promptLog) note(prompt string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	l.seen[prompt] = true
}

// beginnings returns the known prompts that the given one begins with, itself
// left out.
func (l *promptLog) beginnings(prompt string) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.seen {
		if len(p) < len(prompt) && strings.HasPrefix(prompt, p) {
			out = append(out, p)
		}
	}
	return out
}

func (l *promptLog) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.seen)
}
