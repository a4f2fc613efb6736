package faultinject

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// checkGemini refuses what generateContent refuses, in its words. They are those
// of public reports; whoever adds a rule quotes the real message, since clients
// match on it.
func checkGemini(h http.Header, path string, call geminiCall, body []byte) *Refusal {
	if r := checkGoogleKey(h, path); r != nil {
		return r
	}
	req, r := decodeGemini(body)
	if r != nil {
		return r
	}
	model := modelName(call.model)
	for _, check := range []func() *Refusal{
		func() *Refusal { return checkContents(req.Contents) },
		func() *Refusal { return checkGeminiTools(model, req) },
		func() *Refusal { return checkGeminiPairs(req.Contents) },
		func() *Refusal { return checkSignatures(model, req.Contents) },
		func() *Refusal { return checkGeminiTail(model, req.Contents) },
	} {
		if r := check(); r != nil {
			return r
		}
	}
	return nil
}

// checkGoogleKey wants a key in the header or the query, or a token.
func checkGoogleKey(h http.Header, path string) *Refusal {
	_, query, _ := strings.Cut(path, "?")
	values, _ := url.ParseQuery(query)
	if h.Get("X-Goog-Api-Key") == "" && h.Get("Authorization") == "" && values.Get("key") == "" {
		return &Refusal{Status: 403, Type: "PERMISSION_DENIED", Message: "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API."}
	}
	return nil
}

// checkContents wants a role and something said in every content. Empty text
// counts only where it carries a signature, as the model itself sends it.
func checkContents(contents []geminiContent) *Refusal {
	if len(contents) == 0 {
		return badArgument("* GenerateContentRequest.contents: contents is not specified\n")
	}
	var bad strings.Builder
	for i, c := range contents {
		if c.Role != "" && c.Role != "user" && c.Role != "model" && c.Role != "function" {
			return badArgument("Please use a valid role: user, model.")
		}
		if len(c.Parts) == 0 {
			fmt.Fprintf(&bad, "* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.\n", i)
		}
		for j, p := range c.Parts {
			if !p.initialized() {
				fmt.Fprintf(&bad, "* GenerateContentRequest.contents[%d].parts[%d].data: required oneof field 'data' must have one initialized field\n", i, j)
			}
			if f := p.FunctionCall; f != nil && f.Name == "" {
				fmt.Fprintf(&bad, "* GenerateContentRequest.contents[%d].parts[%d].function_call.name: [REQUIRED_FIELD_MISSING]\n", i, j)
			}
			if f := p.FunctionResponse; f != nil && f.Name == "" {
				fmt.Fprintf(&bad, "* GenerateContentRequest.contents[%d].parts[%d].function_response.name: [REQUIRED_FIELD_MISSING]\n", i, j)
			}
			for name, raw := range map[string]json.RawMessage{"function_call.args": p.args(), "function_response.response": p.response()} {
				if len(raw) > 0 && raw[0] != '{' && string(raw) != "null" {
					return badArgument("Invalid value at 'contents[%d].parts[%d].%s' (type.googleapis.com/google.protobuf.Struct), %s", i, j, name, raw)
				}
			}
		}
	}
	if bad.Len() > 0 {
		return badArgument("%s", bad.String())
	}
	return nil
}

func (p geminiPart) args() json.RawMessage {
	if p.FunctionCall == nil {
		return nil
	}
	return p.FunctionCall.Args
}

func (p geminiPart) response() json.RawMessage {
	if p.FunctionResponse == nil {
		return nil
	}
	return p.FunctionResponse.Response
}

func (p geminiPart) initialized() bool {
	text := p.Text != nil && (*p.Text != "" || p.ThoughtSignature != "")
	return text || p.FunctionCall != nil || p.FunctionResponse != nil || p.ExecutableCode != nil || p.CodeExecutionResult != nil ||
		p.InlineData != nil || p.FileData != nil || p.ToolCall != nil || p.ToolResponse != nil
}

// checkGeminiTools refuses combinations that only models from 3 on take.
func checkGeminiTools(model string, req geminiRequest) *Refusal {
	functions, hosted := false, false
	for _, t := range req.Tools {
		functions = functions || len(t.FunctionDeclarations) > 0
		hosted = hosted || t.GoogleSearch != nil || t.GoogleSearchRetrieval != nil || t.CodeExecution != nil || t.URLContext != nil
	}
	if geminiVersion(model) >= 3 {
		return nil
	}
	mime := req.GenerationConfig.ResponseMimeType
	switch structured := mime != "" && mime != "text/plain"; {
	case structured && functions:
		return badArgument("Function calling with a response mime type: '%s' is unsupported", mime)
	case structured && hosted:
		return badArgument("Tool use with a response mime type: '%s' is unsupported", mime)
	case functions && hosted:
		return badArgument("Tool use with function calling is unsupported")
	}
	return nil
}

// checkGeminiPairs demands that calls stand behind a turn of the user's, and that
// each is answered in the content right behind it.
func checkGeminiPairs(contents []geminiContent) *Refusal {
	for i, c := range contents {
		if len(c.calls()) > 0 && (i == 0 || contents[i-1].Role == "model") {
			return badArgument("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
		}
		if c.responses() > 0 && (i == 0 || len(contents[i-1].calls()) == 0) {
			return badArgument("Please ensure that function response turn comes immediately after a function call turn.")
		}
		if r := checkCallIDs(c, contents[i+1:]); r != nil {
			return r
		}
		if n := len(c.calls()); n > 0 && (i == len(contents)-1 || contents[i+1].responses() != n) {
			return badArgument("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
		}
	}
	return nil
}

// checkCallIDs wants a response to name the call it answers, where both have ids
// (github.com/router-for-me/CLIProxyAPI/issues/5199).
func checkCallIDs(c geminiContent, rest []geminiContent) *Refusal {
	ids := map[string]bool{}
	for _, p := range c.calls() {
		ids[p.FunctionCall.ID] = true
	}
	if len(rest) == 0 || len(ids) == 0 || ids[""] {
		return nil
	}
	for _, p := range rest[0].Parts {
		if f := p.FunctionResponse; f != nil && f.ID != "" && !ids[f.ID] {
			return badArgument("functionResponse.id does not match functionCall.id")
		}
	}
	return nil
}

// skippedSignatures are what Google lets a history carry in place of a signature
// of its own (ai.google.dev/gemini-api/docs/thought-signatures).
var skippedSignatures = map[string]bool{
	"skip_thought_signature_validator":                 true,
	"c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=":     true, // the same, as bytes
	"context_engineering_is_the_way_to_go":             true,
	"Y29udGV4dF9lbmdpbmVlcmluZ19pc190aGVfd2F5X3RvX2dv": true,
}

// checkSignatures wants, from models of version 3 on, the signature of the first
// call of every step of the current turn, and every signature in the part it was
// issued for. The current turn begins with the last content of the user's that is
// not an answer to calls.
func checkSignatures(model string, contents []geminiContent) *Refusal {
	if geminiVersion(model) < 3 {
		return nil
	}
	current := 0
	for i, c := range contents {
		if c.Role != "model" && c.responses() < len(c.Parts) {
			current = i
		}
	}
	for i, c := range contents {
		if calls := c.calls(); i > current && len(calls) > 0 && calls[0].ThoughtSignature == "" {
			return badArgument("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.", calls[0].FunctionCall.Name, i+1)
		}
		for _, p := range c.Parts {
			if s := p.ThoughtSignature; s != "" && !skippedSignatures[s] && s != p.signature() {
				return badArgument("Corrupted thought signature.")
			}
		}
	}
	return nil
}

// signature is what this provider issues for such a part. The one of a text is
// good for any text of the turn, since a client may have joined the pieces; that
// of a call is good for this call alone.
func (p geminiPart) signature() string {
	switch f := p.FunctionCall; {
	case f != nil:
		return signCall(f.Name, string(f.Args))
	case p.ExecutableCode != nil:
		return signPart("code", p.ExecutableCode.Code)
	}
	return signPart("text", "")
}

// signCall signs a call, whatever its arguments' spelling.
func signCall(name, args string) string {
	var plain any
	if args == "" || json.Unmarshal([]byte(args), &plain) != nil || plain == nil {
		plain = map[string]any{}
	}
	return signPart("call "+name, string(mustJSON(plain)))
}

// checkGeminiTail looks at a request that ends with the model's turn.
func checkGeminiTail(model string, contents []geminiContent) *Refusal {
	if contents[len(contents)-1].Role == "model" && !geminiPrefills(model) {
		return badArgument("Requests ending with a model turn are not supported.")
	}
	return nil
}

// geminiPrefills reports whether a model goes on in its own trailing turn: those
// before 3.5-flash-lite and 3.6 do, none since (WIRE 2.1).
func geminiPrefills(model string) bool {
	model = strings.TrimPrefix(model, "models/")
	for _, lite := range []string{"gemini-3.5-flash-lite", "gemini-flash-lite-latest"} {
		if strings.HasPrefix(model, lite) {
			return false
		}
	}
	v := geminiVersion(model)
	return v > 0 && v < 3.6 || strings.HasSuffix(model, "pro-latest")
}

// geminiVersion is the number in a model's name, zero if it has none.
func geminiVersion(model string) float64 {
	at := strings.Index(model, "gemini-")
	if at < 0 {
		return 0
	}
	digits, _, _ := strings.Cut(model[at+len("gemini-"):], "-")
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0
	}
	return v
}
