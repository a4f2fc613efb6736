package gemini

import (
	"strconv"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// faults pairs HTTP codes with canonical statuses (cloud.google.com/apis/design/errors;
// ai.google.dev/gemini-api/docs/troubleshooting). The first of a code is the one
// that is rendered for it.
var faults = [...]struct {
	code   int
	status string
}{
	{400, "INVALID_ARGUMENT"},
	{400, "FAILED_PRECONDITION"},
	{400, "OUT_OF_RANGE"},
	{401, "UNAUTHENTICATED"},
	{403, "PERMISSION_DENIED"},
	{404, "NOT_FOUND"},
	{409, "ABORTED"},
	{409, "ALREADY_EXISTS"},
	{429, "RESOURCE_EXHAUSTED"},
	{499, "CANCELLED"},
	{500, "INTERNAL"},
	{500, "UNKNOWN"},
	{500, "DATA_LOSS"},
	{501, "UNIMPLEMENTED"},
	{503, "UNAVAILABLE"},
	{504, "DEADLINE_EXCEEDED"},
}

func statusOf(code int) string {
	for _, f := range faults {
		if f.code == code {
			return f.status
		}
	}
	if 400 <= code && code < 500 {
		return "FAILED_PRECONDITION"
	}
	return "UNAVAILABLE"
}

func codeOf(status string) int {
	for _, f := range faults {
		if f.status == status {
			return f.code
		}
	}
	return 0
}

// readFault reads an error member: {code, message, status}, or what a gateway puts
// there. It allocates: a stream has one fault.
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
			if f.Type == "" || string(key) == "status" {
				f.Type = plain(val)
			}
		}
	}
	if f.Status == 0 {
		f.Status = codeOf(f.Type)
	}
	return f
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
