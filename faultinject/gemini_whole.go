package faultinject

import (
	"fmt"
	"strings"
)

// geminiWhole renders a as the answer of generateContent: one chunk with all
// parts.
func geminiWhole(a Answer, o Options) []byte {
	o = o.withDefaults("")
	u := a.usage(o)
	if a.Finish == FinishBlocked {
		return fmt.Appendf(nil, `{"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"},%s`, geminiTail(o, u, 0, 0))
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
	content, more := "", ""
	if len(parts) > 0 {
		content = `"content": {"parts": [` + strings.Join(parts, ",") + `],"role": "model"},`
	}
	if len(a.Sources) > 0 {
		more = grounding(a)
	}
	candidates := make([]string, o.N)
	for i := range candidates {
		candidates[i] = fmt.Sprintf(`{%s"finishReason": %s,"index": %d%s}`, content, quote(geminiFinish(a.Finish)), i, more)
	}
	return fmt.Appendf(nil, `{"candidates": [%s],%s`, strings.Join(candidates, ","), geminiTail(o, u, u.Reasoning, max(0, u.Out-u.Reasoning)))
}
