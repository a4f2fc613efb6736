package faultinject

import (
	"fmt"
	"strings"
)

// geminiWhole renders a as the answer of generateContent: one chunk with all
// parts, and what the last chunk of a stream tells and counts.
func geminiWhole(a Answer, o Options) []byte {
	o = o.withDefaults("")
	w := geminiWriter{o: o, u: a.usage(o)}
	content, more := "", ""
	for _, c := range geminiChunks(a, o) {
		w.count(c, 0)
		more = c.more
	}
	if a.Finish == FinishBlocked {
		return fmt.Appendf(nil, `{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},%s`, w.tail())
	}
	signed := geminiVersion(modelName(o.Model)) >= 3
	var parts []string
	called := 0
	for i, k := range a.Blocks {
		switch k.Kind {
		case TextBlock, RefusalBlock:
			sign := ""
			if signed && k.Kind == TextBlock && i == len(a.Blocks)-1 {
				sign = `,"thoughtSignature": ` + quote(signPart("text", ""))
			}
			parts = append(parts, `{"text": `+quote(k.Text)+sign+`}`)
		case ThinkingBlock:
			parts = append(parts, `{"text": `+quote(k.Text)+`,"thought": true}`)
		case ToolBlock:
			for _, c := range geminiCallChunks(k, called, Options{Model: o.Model, ID: o.ID, Seed: o.Seed}) {
				parts = append(parts, c.parts)
			}
			called++
		case CodeBlock:
			for _, c := range geminiCode(k, o) {
				parts = append(parts, c.parts)
			}
		}
	}
	if len(parts) > 0 {
		content = `"content": {"parts": [` + strings.Join(parts, ",") + `],"role": "model"},`
	}
	candidates := make([]string, o.N)
	for i := range candidates {
		candidates[i] = fmt.Sprintf(`{%s"finishReason": %s,"index": %d%s}`, content, quote(geminiFinish(a.Finish)), i, more)
	}
	return fmt.Appendf(nil, `{"candidates": [%s],%s`, strings.Join(candidates, ","), w.tail())
}
