package openaichat

import (
	"strconv"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// failed reports whether a chunk is an error: a truthy member error (any host,
// OpenRouter inside an ordinary chunk), or vLLM's {"object":"error",…}.
func (c *chunk) failed() bool {
	return c.fault != nil || string(c.object) == `"error"` || string(c.typ) == `"error"` && c.choices == nil
}

// readFault reads an error in any of the shapes hosts use: an object, a bare
// string, or its fields at the top level.
func readFault(c chunk) *turn.WireFault {
	f := new(turn.WireFault)
	switch jsonwalk.KindOf(c.fault) {
	case jsonwalk.KindObject:
		var o chunk
		var status []byte
		w := jsonwalk.Members(c.fault)
		for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
			switch string(key) {
			case "message":
				o.message = val
			case "type":
				o.typ = val
			case "code":
				o.code = val
			case "detail":
				o.detail = val
			case "status_code", "status": // Groq
				status = val
			}
		}
		fillFault(f, &o)
		if n := httpStatus(plain(status)); n != 0 {
			f.Status = n
		}
	case jsonwalk.KindNone:
		fillFault(f, &c)
	default:
		f.Message = plain(c.fault)
		f.Type, f.Code = plain(c.typ), plain(c.code)
		f.Status = httpStatus(f.Code)
	}
	return f
}

func fillFault(f *turn.WireFault, c *chunk) {
	f.Message, f.Type, f.Code = plain(c.message), plain(c.typ), plain(c.code)
	if f.Message == "" {
		f.Message = plain(c.detail)
	}
	f.Status = httpStatus(f.Code)
}

// plain is the decoded text of a string, the digits of a number, or the raw JSON
// of anything else.
func plain(raw []byte) string {
	if body, ok := jsonwalk.String(raw); ok {
		return string(jsonwalk.Unescape(nil, body))
	}
	if jsonwalk.IsNull(raw) {
		return ""
	}
	return string(raw)
}

// httpStatus reads a status that a host put into an error's code.
func httpStatus(s string) int {
	if n, err := strconv.Atoi(s); err == nil && n >= 400 && n < 600 {
		return n
	}
	return 0
}
