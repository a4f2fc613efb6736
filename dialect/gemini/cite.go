package gemini

import (
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// cited is the value of a candidate's member that stands beside the text (isExtra) with
// its places those of the client's text: they count bytes of UTF-8 from the start of the
// answer (WIRE 1.4), and an attempt that goes on counts from its own. What lies before
// the client's text is left out.
func cited(dst, key, val []byte, j *turn.Joint) []byte {
	if j == nil {
		return append(dst, val...)
	}
	switch string(key) {
	case "groundingMetadata":
		return object(dst, val, func(dst, key, val []byte) ([]byte, bool) {
			if string(key) != "groundingSupports" {
				return append(dst, val...), true
			}
			return places(dst, val, "segment", j), true
		})
	case "citationMetadata":
		return object(dst, val, func(dst, key, val []byte) ([]byte, bool) {
			if string(key) != "citations" && string(key) != "citationSources" { // Vertex, Gemini
				return append(dst, val...), true
			}
			return places(dst, val, "", j), true
		})
	}
	return append(dst, val...)
}

// places moves the range of every element, which stands in a member of it or in itself.
func places(dst, list []byte, in string, j *turn.Joint) []byte {
	return array(dst, list, func(dst, val []byte) []byte {
		span := val
		if in != "" {
			span = jsonwalk.Get(val, in)
		}
		moved, ok := dialect.Moved(span, j.Answer.Bytes, "startIndex", "endIndex")
		switch {
		case !ok:
			return dst
		case in == "":
			return append(dst, moved...)
		case span == nil:
			return append(dst, val...)
		}
		return append(dst, jsonwalk.SetMember(nil, val, in, moved)...)
	})
}
