package gemini

import (
	"net/url"
	"strings"

	"github.com/unbroken-llm/unbroken/dialect"
)

// Call is what the path of a request says: the wire has the model there and not in
// the body.
type Call struct {
	// Model is the name behind models/ or tunedModels/; "" if there is none.
	Model string
	// Method is the name behind the colon.
	Method string
	// Array: the answer streams as a JSON array, since alt=sse was not asked for.
	Array bool
	// Foreign: the answer is asked for in another form than ours, or only in part, so
	// that nobody could tell where it ends (Google's system parameters: alt, fields,
	// callback).
	Foreign bool
}

// lists are what stands in front of a model's name.
var lists = [...]string{"/models/", "/tunedModels/", "/endpoints/"}

// spot finds the model's name in a path, escaped as it stands there, and the method.
func spot(path string) (from, to int, method string) {
	to = len(path)
	if at := strings.LastIndexByte(path, ':'); at >= 0 && !strings.Contains(path[at:], "/") {
		to, method = at, path[at+1:]
	}
	for _, list := range lists {
		if at := strings.LastIndex(path[:to], list); at >= 0 {
			from = max(from, at+len(list))
		}
	}
	if from == 0 {
		from = to
	}
	return from, to, method
}

// ReadPath reads a path with its query, of either API:
//
//	/v1beta/models/{model}:streamGenerateContent?alt=sse
//	/v1/projects/{p}/locations/{l}/publishers/google/models/{model}:streamGenerateContent
//	/v1beta/tunedModels/{model}:generateContent
func ReadPath(path string) Call {
	path, query, _ := strings.Cut(path, "?")
	var c Call
	from, to, method := spot(path)
	c.Model, c.Method = path[from:to], method
	if plain, err := url.PathUnescape(c.Model); err == nil {
		c.Model = plain
	}
	c.Array = c.Streams()
	for pair := range strings.SplitSeq(query, "&") {
		name, val, _ := strings.Cut(pair, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		switch strings.TrimPrefix(name, "$") {
		case "alt":
			c.Array = c.Array && val != "sse"
			c.Foreign = c.Foreign || val != "sse" && val != "json"
		case "fields", "callback":
			c.Foreign = c.Foreign || val != ""
		}
	}
	return c
}

// Masked reports whether an answer is asked for only in part, of whichever method of
// Google's: by a header or by a system parameter. What would be left of a stream is the
// caller's to choose, perhaps without its finishReason or its text, so that nobody could
// tell where it ends, or go on with it.
func Masked(path string, header func(name string) string) bool {
	if mask := strings.TrimSpace(header("X-Goog-FieldMask")); mask != "" && mask != "*" {
		return true
	}
	return ReadPath(path).Foreign
}

// AtModel is a path and query, escaped, with another model's name in it, of a model
// that is nobody's own.
func AtModel(target, model string) string {
	path, query, asks := strings.Cut(target, "?")
	from, to, method := spot(path)
	if from == to || method == "" {
		return target
	}
	path = strings.TrimSuffix(path[:from], "/tunedModels/")
	if len(path) < from {
		path += "/models/"
	}
	path += url.PathEscape(model) + ":" + method
	if asks {
		path += "?" + query
	}
	return path
}

// Streams reports whether the method streams its answer.
func (c Call) Streams() bool { return c.Method == "streamGenerateContent" }

// Generates reports whether the method is one of this dialect.
func (c Call) Generates() bool { return c.Streams() || c.Method == "generateContent" }

// ParseAt is Parse for a request whose path is known.
func (d grammar) ParseAt(path string, body []byte) (*dialect.Request, error) {
	r, err := d.Parse(body)
	if err != nil {
		return nil, err
	}
	c := ReadPath(path)
	r.Model, r.Stream = c.Model, c.Streams()
	return r, nil
}
