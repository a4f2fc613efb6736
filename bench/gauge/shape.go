package gauge

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Shape is what a provider answers. It travels in the model's name, which every
// proxy leaves as it is.
type Shape struct {
	// Events of text, each of Bytes bytes beside its stamp.
	Events, Bytes int
	// Every is the time between two events; 0: as fast as they are taken.
	Every time.Duration
}

const modelPrefix = "bench-"

// Model spells the shape.
func (s Shape) Model() string {
	return fmt.Sprintf("%s%d-%d-%d", modelPrefix, s.Events, s.Bytes, s.Every.Microseconds())
}

// shapeOf finds the shape in a request's body.
func shapeOf(body []byte) (Shape, bool) {
	i := bytes.Index(body, []byte(`"`+modelPrefix))
	if i < 0 {
		return Shape{}, false
	}
	rest := body[i+1+len(modelPrefix):]
	end := bytes.IndexByte(rest, '"')
	if end < 0 {
		return Shape{}, false
	}
	var n [3]int
	parts := bytes.Split(rest[:end], []byte("-"))
	if len(parts) != len(n) {
		return Shape{}, false
	}
	for i, p := range parts {
		v, err := strconv.Atoi(string(p))
		if err != nil || v < 0 {
			return Shape{}, false
		}
		n[i] = v
	}
	return Shape{Events: n[0], Bytes: n[1], Every: time.Duration(n[2]) * time.Microsecond}, true
}

// Body is a Chat request for the shape, with a prompt of that many bytes.
func (s Shape) Body(stream bool, prompt int) []byte { return s.on(Chat, stream, prompt) }

func (s Shape) on(w Wire, stream bool, prompt int) []byte {
	return w.body(s.Model(), stream, strings.Repeat("x", max(prompt, 1)), 0)
}
