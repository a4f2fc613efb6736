package openaichat

import (
	"strconv"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// readUsage reads a usage object, wherever a host puts it.
func readUsage(raw []byte) (turn.Usage, bool) {
	if jsonwalk.KindOf(raw) != jsonwalk.KindObject {
		return turn.Usage{}, false
	}
	u := turn.Usage{Known: true, Raw: raw}
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		switch string(key) {
		case "prompt_tokens":
			u.Input, _ = jsonwalk.Int(val)
		case "completion_tokens":
			u.Output, _ = jsonwalk.Int(val)
		}
	}
	return u, w.Err() == nil
}

// appendUsage renders a usage record. What the provider said beside the totals
// stays; the totals are u's. A provider's total may count more than the sum (xAI
// adds reasoning), so it is moved by the difference only.
func appendUsage(dst []byte, u turn.Usage) []byte {
	was, ok := readUsage(u.Raw)
	if !ok {
		dst = append(dst, `{"prompt_tokens":`...)
		dst = strconv.AppendInt(dst, u.Input, 10)
		dst = append(dst, `,"completion_tokens":`...)
		dst = strconv.AppendInt(dst, u.Output, 10)
		dst = append(dst, `,"total_tokens":`...)
		dst = strconv.AppendInt(dst, u.Input+u.Output, 10)
		return append(dst, '}')
	}
	moved := u.Input - was.Input + u.Output - was.Output
	if u.Input == was.Input && u.Output == was.Output {
		return append(dst, u.Raw...)
	}
	obj := u.Raw
	set := func(key string, n int64) {
		obj = jsonwalk.SetMember(nil, obj, key, strconv.AppendInt(nil, n, 10))
	}
	set("prompt_tokens", u.Input)
	set("completion_tokens", u.Output)
	if total, ok := jsonwalk.Int(jsonwalk.Get(u.Raw, "total_tokens")); ok {
		set("total_tokens", total+moved)
	}
	return append(dst, obj...)
}
