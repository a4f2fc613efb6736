package bedrock

import (
	"strings"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/eventstream"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// faults pairs exceptions with the HTTP status they are sent under before a stream (API reference, "Errors" of
// ConverseStream and InvokeModelWithResponseStream). Where a status has several the first is the one rendered for it.
var faults = [...]struct {
	name   string
	status int
}{
	{"validationException", 400},
	{"serviceQuotaExceededException", 400},
	{"accessDeniedException", 403},
	{"resourceNotFoundException", 404},
	{"modelTimeoutException", 408},
	{"modelStreamErrorException", 424},
	{"modelErrorException", 424},
	{"throttlingException", 429},
	{"modelNotReadyException", 429},
	{"internalServerException", 500},
	{"serviceUnavailableException", 503},
}

func statusOf(name string) int {
	for _, f := range faults {
		if strings.EqualFold(f.name, name) {
			return f.status
		}
	}
	return 0
}

// typeOf returns the exception for a status: one that both streams know as a member, so that every SDK raises its own
// type. What nobody calls by a better name is an error while streaming, which the reference says to retry.
func typeOf(status int) string {
	switch {
	case status == 429:
		return "throttlingException"
	case status == 500:
		return "internalServerException"
	case status == 503 || status == 529:
		return "serviceUnavailableException"
	case status == 408 || status == 424 || status >= 500 || status == 0:
		return "modelStreamErrorException"
	}
	return "validationException"
}

// faultOf reads an event that is an exception or an error; false for any other. It allocates: a stream has one fault.
func faultOf(e sse.Event) (*turn.WireFault, bool) {
	frame, _, err := eventstream.Read(e.Raw, 0)
	if err != nil || len(frame.Raw) == 0 || frame.IsEvent() {
		return nil, false
	}
	f := &turn.WireFault{Type: string(frame.Name), Message: string(frame.Header(":error-message"))}
	f.Status = statusOf(f.Type)
	w := jsonwalk.Members(frame.Payload)
	for k, v, ok := w.Next(); ok; k, v, ok = w.Next() {
		switch string(k) {
		case "message", "Message":
			f.Message = plain(v)
		case "originalMessage":
			if f.Message == "" {
				f.Message = plain(v)
			}
		case "originalStatusCode": // the model's own, behind Bedrock's 424
			if n, ok := jsonwalk.Int(v); ok && 400 <= n && n < 600 {
				f.Status = int(n)
			}
		}
	}
	return f, true
}

// fail appends the exception frame, the form that every SDK raises on. What the provider itself said is kept.
func fail(dst []byte, f dialect.Failure) []byte {
	name, payload := failure(f)
	return eventstream.Append(dst, eventstream.Exception, name, payload)
}

// errorBody is a body of the service's REST errors. It names the type in the body, since headers are not ours here; SDKs
// look for it in both places.
func errorBody(f dialect.Failure) (status int, body []byte) {
	name, payload := failure(f)
	if status = f.Status; status == 0 {
		if status = statusOf(f.Type); status == 0 {
			status = 502
		}
	}
	if statusOf(name) != 0 { // the shape's name, as members of a stream it begins in lower case
		name = strings.ToUpper(name[:1]) + name[1:]
	}
	return status, jsonwalk.SetMember(nil, payload, "__type", quote([]byte(name)))
}

func failure(f dialect.Failure) (name string, payload []byte) {
	if name = f.Type; name == "" {
		name = typeOf(f.Status)
	}
	if jsonwalk.Get(f.Raw, "message") != nil && jsonwalk.Valid(f.Raw) {
		return name, f.Raw
	}
	// Say what broke and why it was not healed (FIELD-REPORTS E6), behind the provider's own words.
	message := f.Message
	if message == "" {
		message = "the provider's stream was interrupted"
	}
	if f.Cause != "" || f.Reason != "" {
		message += " (cause: " + f.Cause + ", not recovered: " + f.Reason + ")"
	}
	return name, append(append([]byte(`{"message":`), quote([]byte(message))...), '}')
}

func quote(text []byte) []byte { return append(jsonwalk.Escape([]byte{'"'}, text), '"') }

// plain decodes a raw string value; "" for anything else.
func plain(raw []byte) string {
	body, _ := jsonwalk.String(raw)
	return string(jsonwalk.Unescape(nil, body))
}
