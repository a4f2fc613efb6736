package interactions

import (
	"errors"
	"math"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

// What makes an event invalid for the dialect.
var (
	ErrNotJSON  = errors.New("event is not json")
	ErrIndex    = errors.New("step index missing")
	ErrReopened = errors.New("step index in use")
	ErrNoStep   = errors.New("delta without a step")
	ErrReplay   = errors.New("replay of another stream")
)

// frame holds the members of an event that matter, raw; typ is a string body.
type frame struct {
	typ, index, step, delta, interaction, status, usage, metadata, fault, id []byte
}

func readFrame(data []byte) (frame, error) {
	var f frame
	w := jsonwalk.Members(data)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		switch string(key) {
		case "event_type":
			f.typ, _ = jsonwalk.String(val)
		case "event_id":
			f.id, _ = jsonwalk.String(val)
		case "index":
			f.index = val
		case "step":
			f.step = val
		case "delta":
			f.delta = val
		case "interaction":
			f.interaction = val
		case "status":
			f.status, _ = jsonwalk.String(val)
		case "usage":
			f.usage = val
		case "metadata":
			f.metadata = val
		case "error":
			if !jsonwalk.IsNull(val) {
				f.fault = val
			}
		}
	}
	if w.Err() != nil {
		return f, ErrNotJSON
	}
	return f, nil
}

// total is the running total of an event, in whichever member it comes.
func (f *frame) total() []byte {
	for _, raw := range [...][]byte{jsonwalk.Get(f.interaction, "usage"), f.usage, jsonwalk.Get(f.metadata, "total_usage"), jsonwalk.Get(f.metadata, "usage")} {
		if jsonwalk.KindOf(raw) == jsonwalk.KindObject {
			return raw
		}
	}
	return nil
}

func wireIndex(raw []byte) (int, bool) {
	n, ok := jsonwalk.Int(raw)
	return int(n), ok && n >= 0 && n <= math.MaxInt32
}

// plain is the decoded text of a string, or the raw JSON of anything else.
func plain(raw []byte) string {
	if body, ok := jsonwalk.String(raw); ok {
		return string(jsonwalk.Unescape(nil, body))
	}
	if jsonwalk.IsNull(raw) {
		return ""
	}
	return string(raw)
}

func quote(plain []byte) []byte { return append(jsonwalk.Escape([]byte{'"'}, plain), '"') }
