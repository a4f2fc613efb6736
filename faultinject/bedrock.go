package faultinject

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/unbroken-llm/unbroken/eventstream"
)

// What both of Bedrock's dialects share: where they are, their frames and their
// errors.

// bedrockCall is what the path of a request says: model and operation.
type bedrockCall struct{ model, operation string }

// readBedrockPath reads /model/{id or ARN}/{operation}; a client may leave the
// slashes of an ARN as they are. The model is empty for any other path.
func readBedrockPath(path string) (c bedrockCall) {
	path, _, _ = strings.Cut(path, "?")
	_, rest, _ := strings.Cut(path, "/model/")
	if at := strings.LastIndexByte(rest, '/'); at > 0 {
		c.model, c.operation = rest[:at], rest[at+1:]
	}
	if plain, err := url.PathUnescape(c.model); err == nil {
		c.model = plain
	}
	return c
}

func (c bedrockCall) streams() bool { return strings.HasSuffix(c.operation, "-stream") }

// bedrockServes reports whether a request is for an operation or its stream.
func bedrockServes(method, path, operation, stream string) bool {
	c := readBedrockPath(path)
	return method == http.MethodPost && c.model != "" && (c.operation == operation || c.operation == stream)
}

// bedrockTraits are the traits of a dialect of frames.
func bedrockTraits(t traits) traits {
	t.framing = func(Options) Framing { return FrameBinary }
	t.errorHead = func(r *Refusal) http.Header { return http.Header{"X-Amzn-Errortype": {bedrockType(r)}} }
	return t
}

// pad is the member that hides how long the n-th token of a response is.
func pad(o Options, n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return letters[:1+hash64("pad", o.ID, fmt.Sprint(n))%uint64(len(letters)-1)]
}

// chunkFrame puts an event of the model's own wire into a frame.
func chunkFrame(payload, padding string) []byte {
	body := `{"bytes":"` + base64.StdEncoding.EncodeToString([]byte(payload)) + `","p":"` + padding + `"}`
	return eventstream.Append(nil, eventstream.Event, "chunk", []byte(body))
}

// classifyFrame tells the kind of a frame.
func classifyFrame(raw []byte) Kind {
	f, _, err := eventstream.Read(raw, 0)
	if err != nil || !f.IsEvent() {
		return KindOther
	}
	if string(f.Name) != "chunk" {
		return converseKind(string(f.Name), f.Payload)
	}
	var c struct{ Bytes []byte }
	var e struct {
		Type  string
		Delta struct{ Type string }
		Block struct{ Type string } `json:"content_block"`
	}
	if json.Unmarshal(f.Payload, &c) != nil || json.Unmarshal(c.Bytes, &e) != nil {
		return KindOther
	}
	return classifyMessages(e.Type, e.Delta.Type, e.Block.Type)
}
