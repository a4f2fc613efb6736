package interrupt

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxMessage bounds [Cause].Message, maxWord its Type and Code, in bytes.
const (
	maxMessage = 1 << 10
	maxWord    = 128
)

// spoken is an error body in the words of its provider.
type spoken struct {
	typ, code, message string
	status             int  // named by the body itself; 0 if none
	found              bool // the body is an error object of a known shape
}

// read understands the error bodies of the field:
//
//	{"error":{"message","type","code"}}            OpenAI and all that follow it; Google has "status" for "type"
//	{"type":"error","error":{"type","message"}}    Anthropic
//	{"error":"…"}  {"message","type","code"}       Ollama; Mistral, vLLM, AWS
//	{"detail":"…"}  {"detail":[{"msg"}]}           FastAPI
//	[{"error":{…}}]                                Gemini without alt=sse
//	<html>…  and bare text                         proxies in between
func read(body []byte) spoken {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	if len(body) == 0 {
		return spoken{}
	}
	if body[0] == '{' || body[0] == '[' || body[0] == '"' {
		if s, ok := readJSON(body); ok {
			return s
		}
	}
	return spoken{message: text(page(body))}
}

func readJSON(body []byte) (spoken, bool) {
	switch body[0] {
	case '"':
		var s string
		if json.Unmarshal(body, &s) != nil {
			return spoken{}, false
		}
		return spoken{message: text(s)}, true
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(body, &list) != nil || len(list) == 0 || list[0][0] != '{' {
			return spoken{}, false
		}
		return readJSON(list[0])
	}
	var o errorObject
	if json.Unmarshal(body, &o) != nil {
		return spoken{}, false
	}
	return o.spoken(), true
}

// errorObject is the union of the shapes. Members are raw, since any of them may
// have another type somewhere (code: 502, "502", null).
type errorObject struct {
	Error      json.RawMessage `json:"error"`
	Detail     json.RawMessage `json:"detail"`
	Msg        json.RawMessage `json:"msg"`
	Message    json.RawMessage `json:"message"`
	Type       json.RawMessage `json:"type"`
	Code       json.RawMessage `json:"code"`
	Status     json.RawMessage `json:"status"`
	StatusCode json.RawMessage `json:"status_code"`
	// Original is what a model answered to Bedrock, behind the status that Bedrock answers.
	Original json.RawMessage `json:"originalStatusCode"`
}

func (o *errorObject) spoken() spoken {
	for _, inner := range []json.RawMessage{o.Error, o.Detail} {
		if len(inner) == 0 {
			continue
		}
		if s, ok := readInner(inner); ok {
			s.found = true
			return s
		}
	}
	s := spoken{
		typ:     clip(scalar(o.Type), maxWord),
		code:    clip(scalar(o.Code), maxWord),
		message: text(scalar(o.Message)),
	}
	if s.message == "" {
		s.message = text(scalar(o.Msg))
	}
	if status := scalar(o.Status); s.typ == "" && number(status) == 0 {
		s.typ = clip(status, maxWord)
	}
	for _, n := range []string{scalar(o.StatusCode), scalar(o.Status), s.code, scalar(o.Original)} {
		if s.status == 0 {
			s.status = number(n)
		}
	}
	s.found = s.message != "" && (s.typ == "error" || s.code != "")
	return s
}

func readInner(raw json.RawMessage) (spoken, bool) {
	switch raw[0] {
	case '{':
		var o errorObject
		if json.Unmarshal(raw, &o) != nil {
			return spoken{}, false
		}
		o.Error, o.Detail = nil, nil
		return o.spoken(), true
	case '[', '"':
		return readJSON(raw)
	}
	return spoken{}, false // null, false
}

// scalar is the text of a JSON string or number, "" for anything else.
func scalar(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	switch c := raw[0]; {
	case c == '"':
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return ""
		}
		return s
	case c == '-' || '0' <= c && c <= '9':
		return string(raw)
	}
	return ""
}

// number reads an HTTP error status out of a code; 0 if it is none.
func number(code string) int {
	if n, err := strconv.Atoi(code); err == nil && n >= 400 && n < 600 {
		return n
	}
	return 0
}

// page reduces an HTML error page to its title; other text is itself.
func page(body []byte) string {
	if body[0] != '<' {
		return string(body[:min(len(body), 4*maxMessage)])
	}
	head := body[:min(len(body), 16<<10)]
	lower := bytes.ToLower(head)
	if len(lower) != len(head) {
		head = lower // case folding moved the offsets; the lower-case title will do
	}
	_, rest, ok := bytes.Cut(lower, []byte("<title>"))
	if !ok {
		return "an HTML page"
	}
	from := len(lower) - len(rest)
	end := bytes.IndexByte(rest, '<')
	if end < 0 {
		end = len(rest)
	}
	return string(head[from : from+end])
}

// text makes one bounded line of a message.
func text(s string) string {
	return clip(strings.Join(strings.Fields(s), " "), maxMessage)
}

// clip cuts s to at most n bytes between two code points and drops what is not
// UTF-8 or not printable on one line.
func clip(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7f || r == utf8.RuneError {
			return -1
		}
		return r
	}, s[:min(len(s), 4*n)])
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
