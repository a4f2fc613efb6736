package gemini

import (
	"errors"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// What makes an event invalid for the dialect.
var (
	ErrNotJSON   = errors.New("chunk is not json")
	ErrMalformed = errors.New("chunk is malformed")
	ErrCandidate = errors.New("candidate index out of range")
)

// chunk is the top level of an event. All fields are raw values; absent and null
// are nil.
type chunk struct {
	candidates, feedback, usage, fault []byte
	id, model                          []byte
	strange                            bool // there are members, and none that we know
}

func readChunk(data []byte) (chunk, error) {
	var c chunk
	known := false
	w := jsonwalk.Members(data)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		c.strange = true
		if jsonwalk.IsNull(val) {
			continue
		}
		switch string(key) {
		case "candidates":
			c.candidates = val
		case "promptFeedback":
			c.feedback = val
		case "usageMetadata":
			c.usage = val
		case "responseId":
			c.id = val
		case "modelVersion":
			c.model = val
		case "error":
			c.fault = val
		case "createTime", "modelStatus", "sdkHttpResponse":
		default:
			continue
		}
		known = true
	}
	if w.Err() != nil {
		return c, ErrMalformed
	}
	c.strange = c.strange && !known
	return c, nil
}

// identifies reports whether the chunk can stand for the message before anything is
// said in it.
func (c *chunk) identifies() bool { return c.feedback != nil || c.id != nil || c.model != nil }

// candidate is one element of candidates.
type candidate struct {
	index  int
	parts  []byte // raw array
	finish []byte // string body; nil: none
	token  []byte // raw string
	extra  bool   // something that is not text and belongs to it

	remarks bool // something that is about it as a whole (isRemark)
}

func readCandidate(raw []byte) (candidate, error) {
	var c candidate
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		if jsonwalk.IsNull(val) {
			continue
		}
		switch string(key) {
		case "index":
			n, ok := jsonwalk.Int(val)
			if !ok || n < 0 || n >= turn.MaxChoices {
				return c, ErrCandidate
			}
			c.index = int(n)
		case "content":
			var err error
			if c.parts, err = readContent(val); err != nil {
				return c, err
			}
		case "finishReason":
			if body, ok := jsonwalk.String(val); ok && len(body) > 0 && string(body) != "FINISH_REASON_UNSPECIFIED" {
				c.finish = body
			}
		case "continuationToken":
			if body, ok := jsonwalk.String(val); ok && len(body) > 0 {
				c.token = val
			}
		case "groundingMetadata", "citationMetadata", "urlContextMetadata", "logprobsResult":
			c.extra = c.extra || filled(val)
		default:
			c.remarks = true
		}
	}
	if w.Err() != nil {
		return c, ErrMalformed
	}
	return c, nil
}

func readContent(raw []byte) (parts []byte, err error) {
	w := jsonwalk.Members(raw)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		if string(key) == "parts" && !jsonwalk.IsNull(val) {
			parts = val
		}
	}
	if w.Err() != nil || parts != nil && jsonwalk.KindOf(parts) != jsonwalk.KindArray {
		return nil, ErrMalformed
	}
	return parts, nil
}

// isExtra reports whether a candidate's member stands beside the text: it belongs
// to what this attempt said, and goes when that goes.
func isExtra(key []byte) bool {
	switch string(key) {
	case "groundingMetadata", "citationMetadata", "urlContextMetadata", "logprobsResult":
		return true
	}
	return false
}

// filled reports whether val is an array or object with something in it; Vertex
// sends an empty groundingMetadata with every chunk.
func filled(val []byte) bool {
	switch jsonwalk.KindOf(val) {
	case jsonwalk.KindArray:
		e := jsonwalk.Elements(val)
		_, ok := e.Next()
		return ok
	case jsonwalk.KindObject:
		w := jsonwalk.Members(val)
		_, _, ok := w.Next()
		return ok
	}
	return false
}
