package gemini

import (
	"strconv"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// counts are the numbers of a usageMetadata that make up input and output.
type counts struct {
	prompt, tools, candidates, thoughts, total int64
	hasTotal, any                              bool
}

func readCounts(raw []byte) (c counts, ok bool) {
	if jsonwalk.KindOf(raw) != jsonwalk.KindObject {
		return c, false
	}
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		n, isInt := jsonwalk.Int(val)
		if !isInt {
			continue
		}
		switch string(key) {
		case "promptTokenCount":
			c.prompt, c.any = n, true
		case "toolUsePromptTokenCount":
			c.tools, c.any = n, true
		case "candidatesTokenCount":
			c.candidates, c.any = n, true
		case "thoughtsTokenCount":
			c.thoughts, c.any = n, true
		case "totalTokenCount":
			c.total, c.hasTotal, c.any = n, true, true
		}
	}
	return c, w.Err() == nil
}

// readUsage reads a running total. Vertex sends one without numbers (the kind of
// traffic alone) with every chunk but the last.
func readUsage(raw []byte) (turn.Usage, bool) {
	c, ok := readCounts(raw)
	if !ok || !c.any {
		return turn.Usage{}, false
	}
	return turn.Usage{Known: true, Input: c.prompt + c.tools, Output: c.candidates + c.thoughts, Raw: raw}, true
}

// appendUsage renders a record with the totals of u. What the provider said beside
// them stays; thoughts and tools keep their share.
func appendUsage(dst []byte, u turn.Usage) []byte {
	c, ok := readCounts(u.Raw)
	if !ok {
		dst = append(dst, `{"promptTokenCount":`...)
		dst = strconv.AppendInt(dst, u.Input, 10)
		dst = append(dst, `,"candidatesTokenCount":`...)
		dst = strconv.AppendInt(dst, u.Output, 10)
		dst = append(dst, `,"totalTokenCount":`...)
		return append(strconv.AppendInt(dst, u.Input+u.Output, 10), '}')
	}
	if u.Input == c.prompt+c.tools && u.Output == c.candidates+c.thoughts {
		return append(dst, u.Raw...)
	}
	obj := u.Raw
	set := func(key string, n int64) {
		obj = jsonwalk.SetMember(nil, obj, key, strconv.AppendInt(nil, max(0, n), 10))
	}
	set("promptTokenCount", u.Input-c.tools)
	set("candidatesTokenCount", u.Output-c.thoughts)
	if c.hasTotal {
		set("totalTokenCount", c.total+u.Input-c.prompt-c.tools+u.Output-c.candidates-c.thoughts)
	}
	return append(dst, obj...)
}
