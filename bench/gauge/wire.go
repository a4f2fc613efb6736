package gauge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// Wire is a protocol in which providers are asked.
type Wire string

// The wires.
const (
	Chat     Wire = "chat"     // OpenAI Chat Completions, and whatever is compatible
	Messages Wire = "messages" // Anthropic Messages
)

// ParseWire reads a wire's name.
func ParseWire(s string) (Wire, error) {
	switch w := Wire(s); w {
	case Chat, Messages:
		return w, nil
	}
	return "", fmt.Errorf("no wire %q: it is chat or messages", s)
}

// path is where requests go on a server whose root is the base.
func (w Wire) path() string {
	if w == Messages {
		return "/v1/messages"
	}
	return "/v1/chat/completions"
}

// endpoint is where requests go under a base URL as SDKs take it: OpenAI's ends in /v1,
// Anthropic's does not, and both are forgiven.
func (w Wire) endpoint(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%q is no http or https URL", base)
	}
	rest := w.path()
	if at := strings.TrimSuffix(u.Path, "/"); strings.HasSuffix(at, "/v1") || w == Chat && at != "" {
		rest = strings.TrimPrefix(rest, "/v1")
	}
	return u.JoinPath(rest).String(), nil
}

// header carries a key as the wire's SDKs do.
func (w Wire) header(key string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}}
	if w == Messages {
		h.Set("X-Api-Key", key)
		h.Set("Anthropic-Version", "2023-06-01")
		return h
	}
	h.Set("Authorization", "Bearer "+key)
	return h
}

// body is a request for one answer of at most limit tokens; 0: as the provider likes, where
// it need not be told.
func (w Wire) body(model string, stream bool, prompt string, limit int) []byte {
	most := ""
	switch {
	case limit > 0:
		most = fmt.Sprintf(`"max_tokens":%d,`, limit)
	case w == Messages:
		most = `"max_tokens":100000,`
	}
	return fmt.Appendf(nil, `{"model":%s,%s"stream":%t,"messages":[{"role":"user","content":%s}]}`, quoted(model), most, stream, quoted(prompt))
}

func quoted(s string) []byte {
	b, err := json.Marshal(s)
	if err != nil {
		panic("BUG: gauge: a string is no JSON: " + err.Error())
	}
	return b
}

// said reads one event's data: the text it brings, whether it is the terminal, and what it
// complains of, if it is an error.
func (w Wire) said(data []byte) (text string, end bool, fault error) {
	if w == Chat && bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")) {
		return "", true, nil
	}
	var e struct {
		Type    string
		Error   json.RawMessage
		Choices []struct{ Delta struct{ Content string } }
		Delta   struct{ Text string }
	}
	if err := json.Unmarshal(data, &e); err != nil {
		return "", false, fmt.Errorf("not an event: %w", err)
	}
	switch {
	case len(e.Error) > 0 && !bytes.Equal(e.Error, []byte("null")):
		return "", false, complaint(words(data))
	case w == Messages:
		return e.Delta.Text, e.Type == "message_stop", nil
	case len(e.Choices) > 0:
		return e.Choices[0].Delta.Content, false, nil
	}
	return "", false, nil
}
