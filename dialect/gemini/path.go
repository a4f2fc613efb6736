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
}

// ReadPath reads a path with its query, of either API:
//
//	/v1beta/models/{model}:streamGenerateContent?alt=sse
//	/v1/projects/{p}/locations/{l}/publishers/google/models/{model}:streamGenerateContent
//	/v1beta/tunedModels/{model}:generateContent
func ReadPath(path string) Call {
	path, query, _ := strings.Cut(path, "?")
	var c Call
	if at := strings.LastIndexByte(path, ':'); at >= 0 && !strings.Contains(path[at:], "/") {
		path, c.Method = path[:at], path[at+1:]
	}
	for _, list := range [...]string{"/models/", "/tunedModels/", "/endpoints/"} {
		if at := strings.LastIndex(path, list); at >= 0 {
			c.Model = path[at+len(list):]
			break
		}
	}
	if plain, err := url.PathUnescape(c.Model); err == nil {
		c.Model = plain
	}
	c.Array = c.Streams() && !asksSSE(query)
	return c
}

func asksSSE(query string) bool {
	for _, pair := range strings.Split(query, "&") {
		if name, val, _ := strings.Cut(pair, "="); (name == "alt" || name == "$alt" || name == "%24alt") && val == "sse" {
			return true
		}
	}
	return false
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
