package faultinject

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// geminiMessages are the fields of the request's messages, by their camelCase
// names, each with the message it holds: empty is a value that is not looked
// into, "[]" before a name a list, "{}" a map. It is what proto JSON knows of
// GenerateContentRequest (ai.google.dev/api/generate-content); whatever is not
// here is refused.
var geminiMessages = map[string]map[string]string{
	"request": {
		"model": "", "contents": "[]content", "systemInstruction": "content", "tools": "[]tool", "toolConfig": "toolConfig",
		"safetySettings": "[]safetySetting", "generationConfig": "generationConfig", "cachedContent": "", "labels": "",
		"continuationToken": "", "serviceTier": "", "store": "", "modelArmorConfig": "",
	},
	"content": {"role": "", "parts": "[]part"},
	"part": {
		"text": "", "thought": "", "thoughtSignature": "", "inlineData": "", "fileData": "", "functionCall": "functionCall",
		"functionResponse": "functionResponse", "executableCode": "", "codeExecutionResult": "", "toolCall": "", "toolResponse": "",
		"videoMetadata": "", "mediaResolution": "", "partMetadata": "",
	},
	"functionCall":     {"id": "", "name": "", "args": "", "partialArgs": "", "willContinue": ""},
	"functionResponse": {"id": "", "name": "", "response": "", "parts": "", "willContinue": "", "scheduling": ""},
	"tool": {
		"functionDeclarations": "[]functionDeclaration", "googleSearch": "", "googleSearchRetrieval": "", "codeExecution": "", "urlContext": "",
		"computerUse": "", "fileSearch": "", "googleMaps": "", "mcpServers": "", "retrieval": "", "enterpriseWebSearch": "",
	},
	"functionDeclaration": {
		"name": "", "description": "", "behavior": "", "parameters": "schema", "parametersJsonSchema": "", "response": "schema", "responseJsonSchema": "",
	},
	"schema": {
		"type": "", "format": "", "title": "", "description": "", "nullable": "", "enum": "", "maxItems": "", "minItems": "",
		"properties": "{}schema", "required": "", "minProperties": "", "maxProperties": "", "minLength": "", "maxLength": "", "pattern": "",
		"example": "", "anyOf": "[]schema", "propertyOrdering": "", "default": "", "items": "schema", "minimum": "", "maximum": "",
		"ref": "", "defs": "",
	},
	"toolConfig": {"functionCallingConfig": "functionCallingConfig", "retrievalConfig": "", "includeServerSideToolInvocations": ""},
	"functionCallingConfig": {
		"mode": "", "allowedFunctionNames": "", "streamFunctionCallArguments": "",
	},
	"safetySetting": {"category": "", "threshold": "", "method": ""},
	"generationConfig": {
		"stopSequences": "", "responseMimeType": "", "responseSchema": "schema", "responseJsonSchema": "", "_responseJsonSchema": "",
		"responseModalities": "", "candidateCount": "", "maxOutputTokens": "", "temperature": "", "topP": "", "topK": "", "seed": "",
		"presencePenalty": "", "frequencyPenalty": "", "responseLogprobs": "", "logprobs": "", "enableEnhancedCivicAnswers": "",
		"speechConfig": "", "thinkingConfig": "thinkingConfig", "imageConfig": "", "mediaResolution": "", "audioTimestamp": "",
		"modelSelectionConfig": "", "routingConfig": "", "responseFormat": "",
	},
	"thinkingConfig": {"includeThoughts": "", "thinkingBudget": "", "thinkingLevel": ""},
}

// fieldReader turns proto JSON into the one spelling the reader of a request
// knows, and notes the names that no message has.
type fieldReader struct{ violations []fieldViolation }

type fieldViolation struct{ Field, Description string }

// read returns a value of a message in camelCase. at is the path to it, as the
// proto spells it.
func (f *fieldReader) read(raw json.RawMessage, message, at string) json.RawMessage {
	if of, ok := strings.CutPrefix(message, "[]"); ok {
		return f.list(raw, of, at)
	}
	if of, ok := strings.CutPrefix(message, "{}"); ok {
		return f.object(raw, at, func(i int, m member) (string, json.RawMessage) {
			return m.key, f.read(m.value, of, fmt.Sprintf("%s[%d].value", at, i))
		})
	}
	fields := geminiMessages[message]
	if fields == nil {
		return raw
	}
	return f.object(raw, at, func(_ int, m member) (string, json.RawMessage) {
		name := camelCase(m.key)
		of, known := fields[name]
		if !known {
			f.unknown(m.key, at)
			return "", nil
		}
		return name, f.read(m.value, of, join2(at, snakeCase(name)))
	})
}

func (f *fieldReader) list(raw json.RawMessage, of, at string) json.RawMessage {
	var elements []json.RawMessage
	if json.Unmarshal(raw, &elements) != nil { // one element stands for a list of it
		elements = []json.RawMessage{raw}
	}
	for i := range elements {
		elements[i] = f.read(elements[i], of, fmt.Sprintf("%s[%d]", at, i))
	}
	return mustJSON(elements)
}

// object rebuilds an object of the members that each returns; a nil value is
// left out. What is no object stays, for the reader of the request to refuse.
func (f *fieldReader) object(raw json.RawMessage, _ string, each func(int, member) (string, json.RawMessage)) json.RawMessage {
	members, err := membersOf(raw)
	if err != nil {
		return raw
	}
	out := []byte{'{'}
	for i, m := range members {
		key, value := each(i, m)
		if value == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, quote(key)...), ':'), value...)
	}
	return append(out, '}')
}

func (f *fieldReader) unknown(name, at string) {
	where := ""
	if at != "" {
		where = " at '" + at + "'"
	}
	f.violations = append(f.violations, fieldViolation{at, fmt.Sprintf("Invalid JSON payload received. Unknown name %q%s: Cannot find field.", name, where)})
}

// refusal is what the provider says of them, nil if there are none.
func (f *fieldReader) refusal() *Refusal {
	if len(f.violations) == 0 {
		return nil
	}
	var lines, fields []string
	for _, v := range f.violations {
		lines = append(lines, v.Description)
		at := ""
		if v.Field != "" {
			at = `"field":` + quote(v.Field) + `,`
		}
		fields = append(fields, `{`+at+`"description":`+quote(v.Description)+`}`)
	}
	r := badArgument("%s", strings.Join(lines, "\n"))
	r.Details = `[{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[` + strings.Join(fields, ",") + `]}]`
	return r
}

// member is one member of a JSON object, in its place.
type member struct {
	key   string
	value json.RawMessage
}

func membersOf(raw []byte) ([]member, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("not an object: %.20s", raw)
	}
	var out []member
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		m := member{key: key.(string)}
		if err := dec.Decode(&m.value); err != nil {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}

func join2(at, name string) string {
	if at == "" {
		return name
	}
	return at + "." + name
}

// camelCase is the JSON name of a field that is spelled either way.
func camelCase(s string) string {
	head, rest, ok := strings.Cut(s, "_")
	for ok && rest != "" && head != "" {
		head += strings.ToUpper(rest[:1])
		rest = rest[1:]
		var more string
		more, rest, ok = strings.Cut(rest, "_")
		head += more
	}
	if head == "" {
		return s
	}
	return head
}

func snakeCase(s string) string {
	var b strings.Builder
	for i, r := range s {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
