package interactions

import (
	"strconv"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// whyOf reads a status (WIRE 1.5). requires_continuation ends the stream of an
// interaction that goes on for whoever sends its token, as official SDKs do by
// themselves.
func whyOf(status []byte, called bool) turn.Why {
	switch string(status) {
	case "", "in_progress", "queued":
		return turn.Unfinished
	case "completed":
		if called {
			return turn.ToolUse
		}
		return turn.Stopped
	case "requires_action":
		return turn.ToolUse
	case "incomplete":
		return turn.Length
	case "requires_continuation":
		return turn.Paused
	case "failed":
		return turn.Broken
	}
	return turn.OtherEnd
}

// statusOf is whyOf backwards.
func statusOf(why turn.Why) string {
	switch why {
	case turn.ToolUse:
		return "requires_action"
	case turn.Length, turn.Filtered:
		return "incomplete"
	}
	return "completed"
}

// readFault reads an error: {code, message}, the code a word or a number.
func readFault(raw []byte) *turn.WireFault {
	f := &turn.WireFault{}
	if jsonwalk.KindOf(raw) != jsonwalk.KindObject {
		f.Message = plain(raw)
		return f
	}
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		switch string(key) {
		case "code":
			f.Code = plain(val)
			if n, err := strconv.Atoi(f.Code); err == nil && n >= 400 && n < 600 {
				f.Status = n
			}
		case "message":
			f.Message = plain(val)
		case "status", "type":
			f.Type = plain(val)
		}
	}
	if f.Type == "" && f.Status == 0 {
		f.Type = f.Code
	}
	return f
}

func readUsage(raw []byte) (turn.Usage, bool) {
	u := turn.Usage{Raw: raw}
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		n, isInt := jsonwalk.Int(val)
		if !isInt {
			continue
		}
		switch string(key) {
		case "total_input_tokens", "total_tool_use_tokens":
			u.Input, u.Known = u.Input+n, true
		case "total_output_tokens", "total_thought_tokens":
			u.Output, u.Known = u.Output+n, true
		}
	}
	return u, u.Known && w.Err() == nil
}

// appendUsage renders a record with the totals of u; thoughts and tools keep their
// share of it.
func appendUsage(dst []byte, u turn.Usage) []byte {
	was, ok := readUsage(u.Raw)
	obj := u.Raw
	if !ok {
		obj, was = []byte("{}"), turn.Usage{}
	}
	if ok && was.Input == u.Input && was.Output == u.Output {
		return append(dst, obj...)
	}
	get := func(key string) int64 {
		n, _ := jsonwalk.Int(jsonwalk.Get(obj, key))
		return n
	}
	set := func(key string, n int64) {
		obj = jsonwalk.SetMember(nil, obj, key, strconv.AppendInt(nil, max(0, n), 10))
	}
	total := get("total_tokens") + u.Input - was.Input + u.Output - was.Output
	set("total_input_tokens", u.Input-get("total_tool_use_tokens"))
	set("total_output_tokens", u.Output-get("total_thought_tokens"))
	set("total_tokens", total)
	return append(dst, obj...)
}
