package bedrock

import (
	"strings"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

var _, _ dialect.Upgrader = Converse{}, Invoke{}

// streaming are the operations, and those that answer them with a stream.
var streaming = [...][2]string{{"/converse", "/converse-stream"}, {"/invoke", "/invoke-with-response-stream"}}

func streamPath(target string) string {
	path, query, asks := strings.Cut(target, "?")
	for _, op := range streaming {
		if before, ok := strings.CutSuffix(path, op[0]); ok {
			if path = before + op[1]; asks {
				path += "?" + query
			}
			return path
		}
	}
	return target
}

// Upgrade implements [dialect.Upgrader]: the path asks for the stream. A guardrail may be told to judge a stream behind
// what it lets through, and judges an ordinary answer as a whole.
func (Converse) Upgrade(_ *dialect.Request, body []byte) (stream []byte, why string) {
	if g := jsonwalk.Get(body, "guardrailConfig"); g != nil && !jsonwalk.IsNull(g) {
		return nil, "guardrail"
	}
	return body, ""
}

// StreamPath implements [dialect.Upgrader].
func (Converse) StreamPath(path string) string { return streamPath(path) }

// Upgrade implements [dialect.Upgrader]: the path asks for the stream.
func (Invoke) Upgrade(_ *dialect.Request, body []byte) (stream []byte, why string) { return body, "" }

// StreamPath implements [dialect.Upgrader].
func (Invoke) StreamPath(path string) string { return streamPath(path) }

// NewFold implements [dialect.Upgrader]: what the chunks hold is Messages, and so is the ordinary answer.
func (d Invoke) NewFold() dialect.Fold { return d.Dialect.NewFold() }
