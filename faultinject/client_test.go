package faultinject

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The SDK of Google brings a worker that nobody can stop.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// start runs a server for one test.
func start(t *testing.T, c Config) *Server {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// patience bounds waits that only a bug makes long.
func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

const (
	chatPath     = "/v1/chat/completions"
	messagesPath = "/v1/messages"

	responsesPath = "/v1/responses"
)

// chatBody is a streaming Chat request with the given messages.
func chatBody(model string, messages ...string) string {
	return `{"model":"` + model + `","stream":true,"messages":[` + strings.Join(messages, ",") + `]}`
}

// messagesBody is a streaming Messages request with the given messages.
func messagesBody(model string, messages ...string) string {
	return `{"model":"` + model + `","stream":true,"max_tokens":4096,"messages":[` + strings.Join(messages, ",") + `]}`
}

// responsesBody is a streaming Responses request with the given input items.
func responsesBody(model string, items ...string) string {
	return `{"model":"` + model + `","stream":true,"input":[` + strings.Join(items, ",") + `]}`
}

func msg(role, text string) string { return `{"role":"` + role + `","content":` + quote(text) + `}` }

// credentials are the headers every provider wants.
func credentials() http.Header {
	return http.Header{"Authorization": {"Bearer test"}, "X-Api-Key": {"test"}, "Anthropic-Version": {"2023-06-01"}, "Content-Type": {"application/json"}}
}

// answerOf is a response as a raw client sees it.
type answerOf struct {
	status int
	header http.Header
	body   string
	err    error // of reading the body, or of the whole exchange
}

// post sends one request on its own connection.
func post(t *testing.T, s *Server, path, body string, header ...string) answerOf {
	t.Helper()
	tr := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
	defer tr.CloseIdleConnections()
	return postWith(t, &http.Client{Transport: tr}, s.URL()+path, body, header...)
}

func postWith(t *testing.T, c *http.Client, url, body string, header ...string) answerOf {
	t.Helper()
	return sendWith(t, c, http.MethodPost, url, body, header...)
}

func sendWith(t *testing.T, c *http.Client, method, url, body string, header ...string) answerOf {
	t.Helper()
	req, err := http.NewRequestWithContext(patience(t), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = credentials()
	for i := 0; i+1 < len(header); i += 2 {
		if header[i+1] == "" {
			req.Header.Del(header[i])
			continue
		}
		req.Header.Set(header[i], header[i+1])
	}
	res, err := c.Do(req)
	if err != nil {
		return answerOf{err: err}
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return answerOf{res.StatusCode, res.Header, string(b), err}
}

// rawExchange sends a request over a bare socket and returns every byte that
// came back and how it ended.
func rawExchange(t *testing.T, s *Server, path, body string) (string, error) {
	t.Helper()
	c, err := net.Dial("tcp", s.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Second))
	var req bytes.Buffer
	r, _ := http.NewRequest(http.MethodPost, s.URL()+path, strings.NewReader(body))
	r.Header = credentials()
	r.Header.Set("Connection", "close")
	if err := r.Write(&req); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(req.Bytes()); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	return string(b), err
}

// heard is what a stream said, folded by the tests' own simple reader.
type heard struct {
	text, thinking string
	calls          []string // NAME ARGS
	finish         string
	ended          bool
	starts         int
	id             string   // Interactions
	events         []string // Interactions: their ids
}

// hear folds a stream.
func hear(t *testing.T, d Dialect, stream string) heard {
	t.Helper()
	if d.framing(Options{}) == FrameBinary {
		return hearFrames(t, d, stream)
	}
	var h heard
	sc := bufio.NewScanner(strings.NewReader(strings.TrimPrefix(stream, "\ufeff")))
	sc.Buffer(nil, 1<<24)
	var data []string
	flush := func() {
		payload := strings.Join(data, "\n")
		data = nil
		switch {
		case payload == "":
		case payload == "[DONE]":
			h.ended = true
		case d == Messages:
			h.messages(t, payload)
		case d == Responses:
			h.responses(t, payload)
		case d == Gemini:
			h.gemini(t, payload)
		case d == Interactions:
			h.interactions(t, payload)
		case d == Completions:
			h.completions(t, payload)
		default:
			h.chat(t, payload)
		}
	}
	for sc.Scan() {
		line := strings.TrimSuffix(sc.Text(), "\r")
		if line == "" {
			flush()
		} else if rest, ok := strings.CutPrefix(line, "data:"); ok {
			data = append(data, strings.TrimPrefix(rest, " "))
		}
	}
	return h
}

func (h *heard) chat(t *testing.T, payload string) {
	t.Helper()
	var c struct {
		Choices []struct {
			Index int
			Delta struct {
				Role, Content, Refusal string
				ReasoningContent       string `json:"reasoning_content"`
				Reasoning              string
				ToolCalls              []struct {
					Index    int
					ID       string
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			FinishReason string `json:"finish_reason"`
		}
	}
	if err := json.Unmarshal([]byte(payload), &c); err != nil {
		t.Fatalf("chunk %s: %v", payload, err)
	}
	for _, ch := range c.Choices {
		if ch.Index != 0 {
			continue
		}
		if ch.Delta.Role != "" {
			h.starts++
		}
		h.text += ch.Delta.Content + ch.Delta.Refusal
		h.thinking += ch.Delta.Reasoning + ch.Delta.ReasoningContent
		for _, k := range ch.Delta.ToolCalls {
			for len(h.calls) <= k.Index {
				h.calls = append(h.calls, "")
			}
			if k.Function.Name != "" {
				h.calls[k.Index] += k.Function.Name + " "
			}
			h.calls[k.Index] += k.Function.Arguments
		}
		if ch.FinishReason != "" {
			h.finish = ch.FinishReason
		}
	}
}

func (h *heard) messages(t *testing.T, payload string) {
	t.Helper()
	var e struct {
		Type  string
		Delta struct {
			Text, Thinking string
			PartialJSON    string `json:"partial_json"`
			StopReason     string `json:"stop_reason"`
		}
		Block struct{ Type, Name string } `json:"content_block"`
	}
	if err := json.Unmarshal([]byte(payload), &e); err != nil {
		t.Fatalf("event %s: %v", payload, err)
	}
	h.text += e.Delta.Text
	h.thinking += e.Delta.Thinking
	switch e.Type {
	case "message_start":
		h.starts++
	case "content_block_start":
		if e.Block.Type == "tool_use" {
			h.calls = append(h.calls, e.Block.Name+" ")
		}
	case "content_block_delta":
		if n := len(h.calls); n > 0 {
			h.calls[n-1] += e.Delta.PartialJSON
		}
	case "message_delta":
		h.finish = e.Delta.StopReason
	case "message_stop":
		h.ended = true
	}
}

func (h *heard) responses(t *testing.T, payload string) {
	t.Helper()
	var e struct {
		Type, Delta string
		Item        struct{ Type, Name string }
		Response    struct{ Status string }
	}
	if err := json.Unmarshal([]byte(payload), &e); err != nil {
		t.Fatalf("event %s: %v", payload, err)
	}
	switch e.Type {
	case "response.created":
		h.starts++
	case "response.output_item.added":
		if e.Item.Name != "" {
			h.calls = append(h.calls, e.Item.Name+" ")
		}
	case "response.output_text.delta", "response.refusal.delta":
		h.text += e.Delta
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		h.thinking += e.Delta
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		h.calls[len(h.calls)-1] += e.Delta
	case "response.completed", "response.incomplete", "response.failed":
		h.finish, h.ended = e.Response.Status, true
	}
}
