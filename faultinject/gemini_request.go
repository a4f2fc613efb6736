package faultinject

import (
	"encoding/json"
	"fmt"
	"strings"
)

// geminiRequest is the body of generateContent, in camelCase.
type geminiRequest struct {
	Contents          []geminiContent
	SystemInstruction geminiContent
	Tools             []geminiTool
	ToolConfig        struct {
		FunctionCallingConfig struct {
			Mode                        string
			AllowedFunctionNames        []string
			StreamFunctionCallArguments bool
		}
	}
	GenerationConfig struct {
		CandidateCount     int
		MaxOutputTokens    *int
		StopSequences      []string
		ResponseMimeType   string
		ResponseSchema     json.RawMessage
		ResponseJSONSchema json.RawMessage `json:"responseJsonSchema"`
		ThinkingConfig     struct{ IncludeThoughts bool }
	}
	ContinuationToken string
}

type geminiContent struct {
	Role  string
	Parts []geminiPart
}

type geminiPart struct {
	Text                *string
	Thought             bool
	ThoughtSignature    string
	FunctionCall        *geminiFunction
	FunctionResponse    *geminiFunction
	ExecutableCode      *struct{ Code string }
	CodeExecutionResult *struct{ Output string }

	InlineData, FileData, ToolCall, ToolResponse json.RawMessage
}

type geminiFunction struct {
	ID, Name       string
	Args, Response json.RawMessage
}

type geminiTool struct {
	FunctionDeclarations []struct {
		Name                 string
		Parameters           json.RawMessage
		ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema"`
	}
	GoogleSearch, GoogleSearchRetrieval, CodeExecution, URLContext json.RawMessage
}

// calls returns the function calls of a content.
func (c geminiContent) calls() (out []geminiPart) {
	for _, p := range c.Parts {
		if p.FunctionCall != nil {
			out = append(out, p)
		}
	}
	return out
}

// responses counts the function responses of a content.
func (c geminiContent) responses() (n int) {
	for _, p := range c.Parts {
		if p.FunctionResponse != nil {
			n++
		}
	}
	return n
}

// decodeGemini reads a body. The refusal names what proto JSON does not know.
func decodeGemini(body []byte) (geminiRequest, *Refusal) {
	var req geminiRequest
	var f fieldReader
	if !json.Valid(body) {
		return req, badArgument("Invalid JSON payload received. Unexpected token.\n%.40s\n^", body)
	}
	plain := f.read(body, "request", "")
	if r := f.refusal(); r != nil {
		return req, r
	}
	if err := json.Unmarshal(plain, &req); err != nil {
		return req, badArgument("Invalid JSON payload received. %v", err)
	}
	return req, nil
}

// readGemini understands a request.
func readGemini(call geminiCall, body []byte) (Prompt, error) {
	p := Prompt{Dialect: Gemini, Model: call.model, Stream: call.method == "streamGenerateContent", Array: call.array}
	req, r := decodeGemini(body)
	if r != nil {
		return p, r
	}
	g, fc := req.GenerationConfig, req.ToolConfig.FunctionCallingConfig
	p.System = req.SystemInstruction.text()
	p.Stops, p.N, p.Thinking = g.StopSequences, g.CandidateCount, g.ThinkingConfig.IncludeThoughts
	p.StreamArgs = fc.StreamFunctionCallArguments
	p.JSONMode = g.ResponseMimeType == "application/json"
	if g.MaxOutputTokens != nil {
		p.MaxTokens = *g.MaxOutputTokens
	}
	if p.JSONMode {
		p.Schema = g.ResponseSchema
		if len(g.ResponseJSONSchema) > 0 {
			p.Schema = g.ResponseJSONSchema
		}
	}
	switch {
	case fc.Mode == "NONE":
		p.ToolChoice = "none"
	case fc.Mode == "ANY" && len(fc.AllowedFunctionNames) == 1:
		p.ToolChoice = fc.AllowedFunctionNames[0]
	case fc.Mode == "ANY":
		p.ToolChoice = "any"
	}
	for _, t := range req.Tools {
		for _, f := range t.FunctionDeclarations {
			tool := Tool{Name: f.Name, Schema: f.Parameters}
			if len(f.ParametersJSONSchema) > 0 {
				tool.Schema = f.ParametersJSONSchema
			}
			p.Tools = append(p.Tools, tool)
		}
	}
	for _, c := range req.Contents {
		p.Turns = append(p.Turns, c.turn())
	}
	if req.ContinuationToken != "" {
		n, err := readToken(req.ContinuationToken)
		if err != nil {
			return p, err
		}
		p.Checkpoint = n
	}
	return p, nil
}

func (c geminiContent) text() string {
	var b strings.Builder
	for _, p := range c.Parts {
		if p.Text != nil && !p.Thought {
			b.WriteString(*p.Text)
		}
	}
	return b.String()
}

// turn is a content as the model sees it.
func (c geminiContent) turn() Turn {
	t := Turn{Role: "user", Text: c.text()}
	if c.Role == "model" {
		t.Role = "assistant"
	}
	for i, p := range c.Parts {
		if p.CodeExecutionResult != nil {
			t.Searches++
		}
		if f := p.FunctionCall; f != nil {
			t.Calls = append(t.Calls, Block{Kind: ToolBlock, ID: f.ID, Name: f.Name, Args: string(f.Args)})
		}
		if f := p.FunctionResponse; f != nil {
			id := f.ID
			if id == "" {
				id = fmt.Sprintf("%s/%d", f.Name, i)
			}
			t.Results = append(t.Results, Result{ID: id, Text: responseText(f.Response)})
		}
	}
	return t
}

// responseText is what a tool answered: the output alone, where it is named.
func responseText(raw json.RawMessage) string {
	var named struct{ Output, Result, Error any }
	if json.Unmarshal(raw, &named) != nil {
		return string(raw)
	}
	for _, v := range []any{named.Output, named.Result, named.Error} {
		switch v := v.(type) {
		case nil:
		case string:
			return v
		default:
			return string(mustJSON(v))
		}
	}
	return string(raw)
}
