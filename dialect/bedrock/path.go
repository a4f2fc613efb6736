package bedrock

import (
	"net/url"
	"strings"
)

// Call is what the path of a request says: the wire has the model there and not in the body.
type Call struct {
	// Model is the model's id or ARN, decoded; "" if there is none.
	Model string
	// Operation is the last step of the path.
	Operation string
}

// ReadPath reads a path, with or without its query. An ARN has slashes, which some clients escape and some do not.
func ReadPath(path string) Call {
	at, end := modelIn(path)
	if at < 0 {
		return Call{}
	}
	c := Call{Model: path[at:end]}
	c.Operation, _, _ = strings.Cut(path[end+1:], "?")
	if plain, err := url.PathUnescape(c.Model); err == nil {
		c.Model = plain
	}
	return c
}

// WithModel is the path with another model in it.
func WithModel(path, model string) string {
	at, end := modelIn(path)
	if at < 0 {
		return path
	}
	return path[:at] + url.PathEscape(model) + path[end:]
}

// modelIn is the place of the model's id in a path, -1 if there is none.
func modelIn(path string) (at, end int) {
	path, _, _ = strings.Cut(path, "?")
	const list = "/model/"
	at, end = strings.Index(path, list)+len(list), strings.LastIndexByte(path, '/')
	if at < len(list) || end <= at {
		return -1, -1
	}
	return at, end
}

// Converses reports whether the operation is one of [Converse].
func (c Call) Converses() bool { return c.Operation == "converse-stream" || c.Operation == "converse" }

// Invokes reports whether it is one of [Invoke].
func (c Call) Invokes() bool {
	return c.Operation == "invoke-with-response-stream" || c.Operation == "invoke"
}

// Streams reports whether the operation streams its answer.
func (c Call) Streams() bool {
	return c.Operation == "converse-stream" || c.Operation == "invoke-with-response-stream"
}
