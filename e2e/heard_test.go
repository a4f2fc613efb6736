package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/unbroken-llm/unbroken/faultinject"
)

// heardTurn is what a client has read of a stream.
type heardTurn struct {
	text, finish string
	calls        map[int]heardCall
	members      map[string]string // of a Gemini call that is being read, by path
}

type heardCall struct{ id, name, args string }

func (h heardTurn) String() string { return fmt.Sprintf("%q %v %s", h.text, h.calls, h.finish) }

func (h *heardTurn) call(i int, c heardCall) {
	if h.calls == nil {
		h.calls = map[int]heardCall{}
	}
	was := h.calls[i]
	h.calls[i] = heardCall{was.id + c.id, was.name + c.name, was.args + c.args}
}

// has tells whether the client has come so far.
func (h *heardTurn) has(what string) bool {
	switch what {
	case "":
		return true
	case "text":
		return h.text != ""
	case "call":
		return len(h.calls) > 0
	}
	return h.finish != ""
}

// tongue is a dialect as its clients speak it: the request for a prompt, and what an
// event says.
type tongue struct {
	name string
	ask  func(prompt string) (path, body string)
	hear func(h *heardTurn, data []byte) error
}

const schema = `{"type":"object","properties":{"city":{"type":"string"},"unit":{"type":"string"}},"required":["city"]}`

func tongueNamed(name string) *tongue {
	for i := range tongues {
		if tongues[i].name == name {
			return &tongues[i]
		}
	}
	panic("no dialect " + name)
}

var tongues = []tongue{
	{"chat", func(prompt string) (path, body string) {
		return "/v1/chat/completions", `{"model":"gpt-4.1","stream":true,"messages":[{"role":"user","content":"` + prompt + `"}],"tools":[{"type":"function","function":{"name":"get_weather","parameters":` + schema + `}}]}`
	}, hearChat},
	{"messages", func(prompt string) (path, body string) {
		return "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":4096,"stream":true,"messages":[{"role":"user","content":"` + prompt + `"}],"tools":[{"name":"get_weather","input_schema":` + schema + `}]}`
	}, hearMessages},
	{"responses", func(prompt string) (path, body string) {
		return "/v1/responses", `{"model":"gpt-4.1","stream":true,"input":"` + prompt + `","tools":[{"type":"function","name":"get_weather","parameters":` + schema + `}]}`
	}, hearResponses},
	{"gemini", func(prompt string) (path, body string) {
		return "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"` + prompt + `"}]}],"tools":[{"functionDeclarations":[{"name":"get_weather","parameters":` + schema + `}]}],` +
			`"toolConfig":{"functionCallingConfig":{"streamFunctionCallArguments":true}}}`
	}, hearGemini},
	{"interactions", func(prompt string) (path, body string) {
		return "/v1beta/interactions", `{"model":"gemini-3.8-flash","stream":true,"input":"` + prompt + `","tools":[{"type":"function","name":"get_weather","parameters":` + schema + `}]}`
	}, hearInteractions},
	{"completions", func(prompt string) (path, body string) {
		return "/v1/completions", `{"model":"gpt-3.5-turbo-instruct","stream":true,"prompt":"` + prompt + `"}`
	}, hearCompletions},
}

func hearChat(h *heardTurn, data []byte) error {
	var e struct {
		Choices []struct {
			Delta struct {
				Content string
				Calls   []struct {
					Index    int
					ID       string
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
			Finish string `json:"finish_reason"`
		}
	}
	err := json.Unmarshal(data, &e)
	for _, c := range e.Choices {
		h.text, h.finish = h.text+c.Delta.Content, h.finish+c.Finish
		for _, call := range c.Delta.Calls {
			h.call(call.Index, heardCall{call.ID, call.Function.Name, call.Function.Arguments})
		}
	}
	return err
}

func hearMessages(h *heardTurn, data []byte) error {
	var e struct {
		Index int
		Block struct{ ID, Name, Type string } `json:"content_block"`
		Delta struct {
			Text string
			JSON string `json:"partial_json"`
			Stop string `json:"stop_reason"`
		}
	}
	err := json.Unmarshal(data, &e)
	h.text, h.finish = h.text+e.Delta.Text, h.finish+e.Delta.Stop
	if e.Block.Type == "tool_use" || e.Delta.JSON != "" {
		h.call(e.Index, heardCall{e.Block.ID, e.Block.Name, e.Delta.JSON})
	}
	return err
}

func hearResponses(h *heardTurn, data []byte) error {
	var e struct {
		Type, Delta string
		Index       int `json:"output_index"`
		Item        struct {
			Type, Name, Arguments string
			CallID                string `json:"call_id"`
		}
		Response struct{ Status string }
	}
	err := json.Unmarshal(data, &e)
	switch e.Type {
	case "response.output_text.delta":
		h.text += e.Delta
	case "response.output_item.added":
		if e.Item.Type == "function_call" {
			h.call(e.Index, heardCall{e.Item.CallID, e.Item.Name, e.Item.Arguments})
		}
	case "response.function_call_arguments.delta":
		h.call(e.Index, heardCall{args: e.Delta})
	case "response.completed", "response.incomplete": // failed is an error
		h.finish += e.Response.Status
	}
	return err
}

// hearGemini puts arguments that come member by member together: only whole ones are
// a call's.
func hearGemini(h *heardTurn, data []byte) error {
	type partial struct {
		Path   string `json:"jsonPath"`
		String string `json:"stringValue"`
	}
	var e struct {
		Candidates []struct {
			Content struct {
				Parts []struct {
					Text string
					Call *struct {
						ID, Name string
						Args     map[string]string
						Partial  []partial `json:"partialArgs"`
						More     bool      `json:"willContinue"`
					} `json:"functionCall"`
				}
			}
			Finish string `json:"finishReason"`
		}
	}
	err := json.Unmarshal(data, &e)
	for _, c := range e.Candidates {
		h.finish += c.Finish
		for _, p := range c.Content.Parts {
			if h.text += p.Text; p.Call == nil {
				continue
			}
			if p.Call.Name != "" {
				h.call(len(h.calls), heardCall{id: p.Call.ID, name: p.Call.Name})
				h.members = map[string]string{}
			}
			for _, a := range p.Call.Partial {
				h.members[strings.TrimPrefix(a.Path, "$.")] += a.String
			}
			for k, v := range p.Call.Args {
				h.members[k] = v
			}
			if !p.Call.More {
				args, err := json.Marshal(h.members)
				if err != nil {
					return err
				}
				h.call(len(h.calls)-1, heardCall{args: string(args)})
			}
		}
	}
	return err
}

func hearInteractions(h *heardTurn, data []byte) error {
	var e struct {
		Type  string `json:"event_type"`
		Index int
		Step  struct{ Type, ID, Name string }
		Delta struct {
			Text, Type string
			Arguments  json.RawMessage
		}
		Interaction struct{ Status string }
	}
	err := json.Unmarshal(data, &e)
	switch e.Type {
	case "step.start":
		if e.Step.Type == "function_call" {
			h.call(e.Index, heardCall{id: e.Step.ID, name: e.Step.Name})
		}
	case "step.delta":
		if h.text += e.Delta.Text; e.Delta.Type == "arguments_delta" && err == nil {
			var args string
			err = json.Unmarshal(e.Delta.Arguments, &args)
			h.call(e.Index, heardCall{args: args})
		}
	case "interaction.completed":
		h.finish += e.Interaction.Status
	}
	return err
}

func hearCompletions(h *heardTurn, data []byte) error {
	var e struct {
		Choices []struct {
			Text   string
			Finish string `json:"finish_reason"`
		}
	}
	err := json.Unmarshal(data, &e)
	for _, c := range e.Choices {
		h.text, h.finish = h.text+c.Text, h.finish+c.Finish
	}
	return err
}

// question is one request for a turn.
type question struct {
	in             *tongue
	prompt, run    string
	answer, script string // of the provider
	header         http.Header
}

// ask sends a turn's request and reads on until enough was heard, or to the end.
func (q question) ask(ctx context.Context, base string, enough func(*heardTurn) bool) (h heardTurn, err error) {
	path, body := q.in.ask(q.prompt)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, strings.NewReader(body))
	if err != nil {
		return h, err
	}
	for k, v := range map[string]string{
		"Content-Type": "application/json", "Authorization": "Bearer k", "x-api-key": "k", "x-goog-api-key": "k", "anthropic-version": "2023-06-01",
		faultinject.HeaderScenario: q.answer, faultinject.HeaderTurn: q.run, "X-Run-Id": q.run,
	} {
		r.Header.Set(k, v)
	}
	for k, v := range q.header {
		r.Header[k] = v
	}
	if q.script != "" {
		r.Header.Set(faultinject.HeaderScript, q.script)
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return h, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(res.Body)
		return h, fmt.Errorf("status %d: %s", res.StatusCode, b)
	}
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data: ")); ok && len(data) > 0 && data[0] == '{' && err == nil {
			if err := q.in.hear(&h, data); err != nil {
				return h, fmt.Errorf("%s: %w", data, err)
			}
		}
		if err == io.EOF {
			return h, nil
		}
		if err != nil || enough != nil && enough(&h) {
			return h, err
		}
	}
}
