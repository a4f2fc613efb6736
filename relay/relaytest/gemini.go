package relaytest

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/unbroken-llm/unbroken/faultinject"
)

// RenderGemini renders an answer as streamGenerateContent?alt=sse does: CRLF, a
// running total in every chunk, whole calls with a signature on the first, the
// finish with an empty text.
func RenderGemini(a faultinject.Answer, o faultinject.Options) [][]byte {
	g := geminiStream{id: o.ID, model: o.Model, seed: o.Seed}
	for _, b := range a.Blocks {
		switch b.Kind {
		case faultinject.TextBlock, faultinject.RefusalBlock:
			g.text(b.Text, "")
		case faultinject.ThinkingBlock:
			g.text(b.Text, `,"thought":true`)
		case faultinject.ToolBlock:
			g.call(b)
		case faultinject.RedactedBlock:
		}
	}
	finish := "STOP"
	switch a.Finish {
	case faultinject.FinishLength:
		finish = "MAX_TOKENS"
	case faultinject.FinishRefusal:
		finish = "SAFETY"
	}
	g.chunk(`{"text":""}`, `,"finishReason":"`+finish+`"`)
	return g.events
}

type geminiStream struct {
	id, model string
	seed      uint64
	said      int
	calls     int
	events    [][]byte
}

func (g *geminiStream) chunk(part, rest string) {
	g.events = append(g.events, fmt.Appendf(nil, `data: {"candidates": [{"content": {"parts": [%s],"role": "model"}%s,"index": 0}],`+
		`"usageMetadata": {"promptTokenCount": 11,"candidatesTokenCount": %d,"totalTokenCount": %d},"modelVersion": %s,"responseId": %s}`+"\r\n\r\n",
		part, rest, g.said/4, 11+g.said/4, quoteJSON(g.model), quoteJSON(g.id)))
}

// text renders a text in pieces of uneven size.
func (g *geminiStream) text(s, rest string) {
	for n := int(g.seed%13) + 7; s != ""; n = n*5%61 + 3 {
		k := min(n, len(s))
		for k < len(s) && !utf8.RuneStart(s[k]) {
			k++
		}
		g.said += k
		g.chunk(`{"text": `+quoteJSON(s[:k])+rest+`}`, "")
		s = s[k:]
	}
}

func (g *geminiStream) call(b faultinject.Block) {
	args := b.Args
	if args == "" {
		args = "{}"
	}
	signature := ""
	if g.calls++; g.calls == 1 {
		signature = `,"thoughtSignature": "c2lnbmVk"`
	}
	g.said += len(args)
	g.chunk(fmt.Sprintf(`{"functionCall": {"name": %s,"args": %s,"id": "%s-%d"}%s}`, quoteJSON(b.Name), args, g.id, g.calls, signature), "")
}

func quoteJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// GeminiMessages is a generateContent request as the messages that the provider
// model reads (see Asked). It fails when the request is none that Gemini takes.
func GeminiMessages(body []byte) ([]byte, error) {
	var q struct {
		Contents []struct {
			Role  string
			Parts []struct {
				Text             *string
				Thought          bool
				ThoughtSignature string
				FunctionCall     *struct{ Name string }
			}
		}
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return nil, fmt.Errorf("not a generateContent request: %w", err)
	}
	type message struct {
		Role    string `json:"role"`
		Content string `json:"content"`
	}
	var out struct {
		Messages []message `json:"messages"`
	}
	for i, c := range q.Contents {
		m := message{Role: "user"}
		if c.Role == "model" {
			m.Role = "assistant"
		}
		if len(c.Parts) == 0 {
			return nil, fmt.Errorf("content %d has no parts", i)
		}
		var text strings.Builder
		for _, p := range c.Parts {
			if p.FunctionCall != nil && i >= len(q.Contents)-2 && c.Role == "model" {
				return nil, fmt.Errorf("functionCall %s without its functionResponse", p.FunctionCall.Name)
			}
			if p.Text == nil || p.Thought {
				continue
			}
			if *p.Text == "" && p.ThoughtSignature == "" {
				return nil, fmt.Errorf("content %d has an empty text", i)
			}
			text.WriteString(*p.Text)
		}
		m.Content = text.String()
		out.Messages = append(out.Messages, m)
	}
	return json.Marshal(out)
}
