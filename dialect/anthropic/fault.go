package anthropic

import (
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// faults pairs error types with the HTTP status they are sent under (docs.anthropic.com/en/api/errors, WIRE 1.3). Where
// a status has several types the first is the one rendered for it.
var faults = [...]struct {
	typ    string
	status int
}{
	{"invalid_request_error", 400},
	{"authentication_error", 401},
	{"billing_error", 402},
	{"permission_error", 403},
	{"not_found_error", 404},
	{"request_too_large", 413},
	{"rate_limit_error", 429},
	{"api_error", 500},
	{"timeout_error", 504},
	{"overloaded_error", 529},
}

// statusOf returns the HTTP status of an error type, 0 when the type is not the protocol's.
func statusOf(typ string) int {
	for _, f := range faults {
		if f.typ == typ {
			return f.status
		}
	}
	return 0
}

// typeOf returns the error type of an HTTP status: its own, else that of its class.
func typeOf(status int) string {
	for _, f := range faults {
		if f.status == status {
			return f.typ
		}
	}
	if 400 <= status && status < 500 {
		return "invalid_request_error"
	}
	return "api_error"
}

// readFault reads the error member of an in-band error. Gateways put strings, numbers and bare texts where the protocol
// has {type, message}; whatever can be read is kept. It allocates: a stream has one fault.
func readFault(raw []byte) *turn.WireFault {
	f := &turn.WireFault{}
	if body, ok := jsonwalk.String(raw); ok {
		f.Message = plain(body)
		return f
	}
	w := jsonwalk.Members(raw)
	for k, v, ok := w.Next(); ok; k, v, ok = w.Next() {
		body, isString := jsonwalk.String(v)
		switch string(plainKey(k)) {
		case "type":
			f.Type = plain(body)
		case "message":
			f.Message = plain(body)
		case "code":
			if isString {
				f.Code = plain(body)
			} else if n, ok := jsonwalk.Int(v); ok {
				f.Code = string(v)
				if 400 <= n && n < 600 {
					f.Status = int(n)
				}
			}
		}
	}
	if s := statusOf(f.Type); s != 0 {
		f.Status = s
	}
	return f
}

func plain(body []byte) string { return string(jsonwalk.Unescape(nil, body)) }
