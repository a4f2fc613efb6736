package faultinject

import (
	"encoding/json"
	"fmt"
	"strings"
)

// RenderGemini returns the stream of a as Gemini's generateContent sends it, one
// element per event, or per element of the JSON array (WIRE 1.4).
func RenderGemini(a Answer, o Options) [][]byte { return Raws(geminiEvents(a, o)) }

// geminiChunk is one chunk of one candidate before it is framed.
type geminiChunk struct {
	kind     Kind
	parts    string // the elements of content.parts
	more     string // further members of the candidate, each with its comma in front
	finish   string
	text     int // bytes of text in it
	thoughts int // tokens
	out      int // tokens
}

// geminiEvents renders a with each event's kind. The last chunk is the terminal
// event: there is no other.
func geminiEvents(a Answer, o Options) []Event {
	o = o.withDefaults("")
	w := geminiWriter{o: o, u: a.usage(o)}
	var bodies []string
	var events []Event
	for _, c := range geminiChunks(a, o) {
		for choice := range o.N {
			w.count(c, choice)
			events = append(events, Event{Kind: c.kind})
			bodies = append(bodies, w.chunk(c, choice))
		}
	}
	for i, body := range bodies {
		events[i].Raw = o.framing().event("", body, i == 0)
	}
	if o.Array {
		events = append(events, Event{KindOther, []byte(arrayEnd)})
		return events
	}
	v := o.Variant
	v.CRLF = o.framing() == FrameCRLF
	if v.NoSpace || v.MultiData {
		for i, body := range bodies {
			events[i].Raw = frame(v, "", body)
		}
	}
	return finishFrames(v, events)
}

// framing is how the events of Gemini stand in the body.
func (o Options) framing() Framing {
	switch {
	case o.Array:
		return FrameArray
	case o.Variant.LF:
		return FrameLF
	}
	return FrameCRLF
}

// geminiChunks renders one candidate.
func geminiChunks(a Answer, o Options) []geminiChunk {
	if a.Finish == FinishBlocked {
		return []geminiChunk{{kind: KindEnd, finish: "PROHIBITED_CONTENT"}}
	}
	var chunks []geminiChunk
	said, called := o.Said, 0
	for _, k := range a.Blocks {
		switch k.Kind {
		case TextBlock, RefusalBlock:
			for _, p := range pieces(k.Text, o) {
				n := len(unquote(p))
				said += n
				chunks = append(chunks, geminiChunk{kind: KindText, parts: `{"text": ` + p + `}`, text: n, out: 1})
			}
		case ThinkingBlock:
			for _, p := range pieces(k.Text, o) {
				chunks = append(chunks, geminiChunk{kind: KindThinking, parts: `{"text": ` + p + `,"thought": true}`, thoughts: 1})
			}
		case ToolBlock:
			chunks = append(chunks, geminiCallChunks(k, called, o)...)
			called++
		case CodeBlock:
			chunks = append(chunks, geminiCode(k, o)...)
		case RedactedBlock:
			// Gemini has no form for it.
		}
	}
	return endGemini(a, checkpoints(chunks, o), o)
}

// endGemini adds the finish: a chunk of its own with an empty text, which from
// version 3 on carries the signature of the text before it, here or in what is
// continued.
func endGemini(a Answer, chunks []geminiChunk, o Options) []geminiChunk {
	last := geminiChunk{kind: KindEnd, finish: geminiFinish(a.Finish), parts: `{"text": ""}`}
	if n := len(chunks); n > 0 && chunks[n-1].finish != "" { // it pauses
		return chunks
	}
	if n := len(chunks); (n == 0 || chunks[n-1].kind == KindText) && geminiVersion(modelName(o.Model)) >= 3 {
		last.parts = `{"text": "","thoughtSignature": ` + quote(signPart("text", "")) + `}`
	}
	switch {
	case a.Finish == FinishRefusal:
		last.parts = ""
		last.more = `,"safetyRatings": [{"category": "HARM_CATEGORY_DANGEROUS_CONTENT","probability": "HIGH","blocked": true}]`
	case len(a.Sources) > 0:
		last.more = grounding(a)
	}
	if n := len(chunks); o.Variant.MergeFinish && n > 0 && last.parts == `{"text": ""}` {
		c := &chunks[n-1]
		c.kind, c.finish, c.more = KindEnd, last.finish, c.more+last.more
		return chunks
	}
	return append(chunks, last)
}

// grounding is what a search found, and which text stands on it.
func grounding(a Answer) string {
	var found []string
	for _, s := range a.Sources {
		found = append(found, fmt.Sprintf(`{"web": {"uri": %s,"title": %s}}`, quote(s.URI), quote(s.Title)))
	}
	text := a.Text()
	return fmt.Sprintf(`,"groundingMetadata": {"webSearchQueries": ["what was asked"],"groundingChunks": [%s],`+
		`"groundingSupports": [{"segment": {"startIndex": 0,"endIndex": %d,"text": %s},"groundingChunkIndices": [0]}]}`,
		strings.Join(found, ","), len(text), quote(text))
}

// geminiCode is code the provider runs, and what it printed.
func geminiCode(k Block, o Options) []geminiChunk {
	id := shortID(o, "code")
	sign := ""
	if geminiVersion(modelName(o.Model)) >= 3 {
		sign = `,"thoughtSignature": ` + quote(signPart("code", k.Args))
	}
	return []geminiChunk{
		{kind: KindOther, out: len(tokens(k.Args, o.Seed)), parts: fmt.Sprintf(`{"executableCode": {"language": "PYTHON","code": %s,"id": %s}%s}`, quote(k.Args), quote(id), sign)},
		{kind: KindOther, parts: fmt.Sprintf(`{"codeExecutionResult": {"outcome": "OUTCOME_OK","output": %s,"id": %s}}`, quote(k.Text), quote(id))},
	}
}

// geminiFinish is the finishReason; a turn that asks for calls stops too.
func geminiFinish(f Finish) string {
	switch f {
	case FinishLength:
		return "MAX_TOKENS"
	case FinishRefusal:
		return "SAFETY"
	case FinishPaused:
		return "CONTINUATION"
	default:
		return "STOP"
	}
}

// geminiWriter counts while it renders: usage is a running total on every chunk.
type geminiWriter struct {
	o             Options
	u             Usage
	thoughts, out int
}

func (w *geminiWriter) count(c geminiChunk, choice int) {
	if choice > 0 {
		return
	}
	w.thoughts += c.thoughts
	w.out += c.out
	if c.kind == KindEnd { // what the answer's own count says, if it has one
		w.out = max(w.out, w.u.Out-w.u.Reasoning)
		w.thoughts = max(w.thoughts, w.u.Reasoning)
	}
}

func (w *geminiWriter) chunk(c geminiChunk, choice int) string {
	if c.finish == "PROHIBITED_CONTENT" {
		return fmt.Sprintf(`{"promptFeedback": {"blockReason": %s},%s`, quote(c.finish), w.tail())
	}
	content, finish := `"content": {"parts": [`+c.parts+`],"role": "model"},`, ""
	if c.parts == "" {
		content = ""
	}
	if c.finish != "" {
		finish = `"finishReason": ` + quote(c.finish) + `,`
	}
	return fmt.Sprintf(`{"candidates": [{%s%s"index": %d%s}],%s`, content, finish, choice, c.more, w.tail())
}

// tail is what every chunk ends with.
func (w *geminiWriter) tail() string { return geminiTail(w.o, w.u, w.thoughts, w.out) }

func geminiTail(o Options, u Usage, thoughts, out int) string {
	counts := fmt.Sprintf(`"promptTokenCount": %d,`, u.In)
	if u.CacheRead > 0 {
		counts += fmt.Sprintf(`"cachedContentTokenCount": %d,`, u.CacheRead)
	}
	if out > 0 {
		counts += fmt.Sprintf(`"candidatesTokenCount": %d,`, out)
	}
	counts += fmt.Sprintf(`"totalTokenCount": %d,"promptTokensDetails": [{"modality": "TEXT","tokenCount": %d}]`, u.In+thoughts+out, u.In)
	if thoughts > 0 {
		counts += fmt.Sprintf(`,"thoughtsTokenCount": %d`, thoughts)
	}
	return fmt.Sprintf(`"usageMetadata": {%s},"modelVersion": %s,"responseId": %s}`, counts, quote(modelName(o.Model)), quote(o.ID))
}

// shortID is an id as Gemini gives calls: eight characters.
func shortID(o Options, salt string) string { return strings.ToLower(label(hash64(o.ID), salt)[:8]) }

// wholeArgs reports whether a call can be sent: arguments that max_tokens cut are
// not, in this dialect.
func wholeArgs(args string) (string, bool) {
	if args == "" {
		return "{}", true
	}
	return args, json.Valid([]byte(args))
}
