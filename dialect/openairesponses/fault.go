package openairesponses

import (
	"strings"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// readFault reads an error in the shapes of the field: nested as OpenAI sends it, flat as its documentation shows it,
// the error member of a failed response, or a bare string (WIRE 1.2). It allocates: a stream has one fault.
func readFault(f *frame) *turn.WireFault {
	raw := f.fault
	if raw == nil {
		raw = jsonwalk.Get(f.response, "error")
	}
	if body, ok := jsonwalk.String(raw); ok {
		return &turn.WireFault{Message: plain(body)}
	}
	out := &turn.WireFault{Code: scalar(f.code), Message: text(f.message)}
	w := jsonwalk.Members(raw)
	for k, v, ok := w.Next(); ok; k, v, ok = w.Next() {
		switch string(plainKey(k)) {
		case "type":
			out.Type = text(v)
		case "code":
			out.Code = scalar(v)
		case "message":
			out.Message = text(v)
		}
	}
	out.Status = statusOf(out)
	return out
}

// scalar is the text of a string, or the digits of a number.
func scalar(raw []byte) string {
	if _, ok := jsonwalk.Int(raw); ok {
		return string(raw)
	}
	return text(raw)
}

// statusOf is the HTTP status that an error stands for where it says so itself: by a number for a code.
func statusOf(f *turn.WireFault) int {
	if n, ok := jsonwalk.Int([]byte(f.Code)); ok && 400 <= n && n < 600 {
		return int(n)
	}
	return 0
}

// final reports whether a failed response is the provider's last word on the request itself, which no second attempt
// changes: the documented codes of response.error about the prompt or its images. Anything else is a fault, to be
// judged by whoever knows them all.
func final(code string) bool {
	switch code {
	case "invalid_prompt", "empty_image_file", "bio_policy", "cyber_policy":
		return true
	case "failed_to_download_image":
		return false // the next attempt may reach it
	}
	return strings.HasPrefix(code, "image_") || strings.HasPrefix(code, "invalid_image") ||
		strings.HasPrefix(code, "invalid_base64") || strings.HasPrefix(code, "unsupported_image")
}
