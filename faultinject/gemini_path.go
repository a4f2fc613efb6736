package faultinject

import (
	"net/url"
	"strings"
)

// geminiCall is what the path of a request says: model and method.
type geminiCall struct {
	model, method string
	array         bool // streams, and alt=sse was not asked for
}

// readGeminiPath reads the paths of both APIs, with their query:
//
//	/v1beta/models/{model}:streamGenerateContent?alt=sse
//	/v1beta1/projects/{p}/locations/{l}/publishers/google/models/{model}:generateContent
//
// ok is false for any other path.
func readGeminiPath(path string) (c geminiCall, ok bool) {
	path, query, _ := strings.Cut(path, "?")
	if escaped, err := url.PathUnescape(path); err == nil {
		path = escaped
	}
	colon := strings.LastIndexByte(path, ':')
	if colon < 0 || strings.Contains(path[colon:], "/") {
		return c, false
	}
	c.method, path = path[colon+1:], path[:colon]
	for _, list := range []string{"/models/", "/tunedModels/", "/endpoints/"} {
		if at := strings.Index(path, list); at >= 0 {
			c.model = path[at+len(list):]
			break
		}
	}
	values, _ := url.ParseQuery(query)
	c.array = c.method == "streamGenerateContent" && values.Get("alt") != "sse" && values.Get("$alt") != "sse"
	return c, c.model != ""
}

func (c geminiCall) generates() bool {
	return c.method == "generateContent" || c.method == "streamGenerateContent"
}
