package gemini

import "encoding/json"

// anyJSON is the schema of JSON mode without one.
var anyJSON = []byte("{}")

// openSchema is responseSchema, the OpenAPI 3.0 subset that the API takes beside
// JSON Schema (ai.google.dev/api/caching#Schema). What only describes is left out,
// and so is format, whose names are not JSON Schema's.
type openSchema struct {
	Type          string                 `json:"type"`
	Nullable      bool                   `json:"nullable"`
	Enum          []string               `json:"enum"`
	Items         *openSchema            `json:"items"`
	Properties    map[string]*openSchema `json:"properties"`
	Required      []string               `json:"required"`
	AnyOf         []*openSchema          `json:"anyOf"`
	Minimum       json.Number            `json:"minimum"`
	Maximum       json.Number            `json:"maximum"`
	MinItems      json.Number            `json:"minItems"` // int64: proto JSON writes them as strings
	MaxItems      json.Number            `json:"maxItems"`
	MinLength     json.Number            `json:"minLength"`
	MaxLength     json.Number            `json:"maxLength"`
	MinProperties json.Number            `json:"minProperties"`
	MaxProperties json.Number            `json:"maxProperties"`
	Pattern       string                 `json:"pattern"`
}

var jsonTypes = map[string]string{
	"STRING": "string", "NUMBER": "number", "INTEGER": "integer", "BOOLEAN": "boolean", "ARRAY": "array", "OBJECT": "object", "NULL": "null",
	"string": "string", "number": "number", "integer": "integer", "boolean": "boolean", "array": "array", "object": "object", "null": "null",
}

// MarshalJSON writes the JSON Schema that says the same.
func (s *openSchema) MarshalJSON() ([]byte, error) {
	out := struct {
		Type          any                    `json:"type,omitempty"`
		Enum          []any                  `json:"enum,omitempty"`
		Items         *openSchema            `json:"items,omitempty"`
		Properties    map[string]*openSchema `json:"properties,omitempty"`
		Required      []string               `json:"required,omitempty"`
		AnyOf         []*openSchema          `json:"anyOf,omitempty"`
		Minimum       json.Number            `json:"minimum,omitempty"`
		Maximum       json.Number            `json:"maximum,omitempty"`
		MinItems      json.Number            `json:"minItems,omitempty"`
		MaxItems      json.Number            `json:"maxItems,omitempty"`
		MinLength     json.Number            `json:"minLength,omitempty"`
		MaxLength     json.Number            `json:"maxLength,omitempty"`
		MinProperties json.Number            `json:"minProperties,omitempty"`
		MaxProperties json.Number            `json:"maxProperties,omitempty"`
		Pattern       string                 `json:"pattern,omitempty"`
	}{
		Items: s.Items, Properties: s.Properties, Required: s.Required, AnyOf: s.AnyOf, Minimum: s.Minimum, Maximum: s.Maximum,
		MinItems: s.MinItems, MaxItems: s.MaxItems, MinLength: s.MinLength, MaxLength: s.MaxLength,
		MinProperties: s.MinProperties, MaxProperties: s.MaxProperties, Pattern: s.Pattern,
	}
	for _, e := range s.Enum {
		out.Enum = append(out.Enum, e)
	}
	if t := jsonTypes[s.Type]; t != "" {
		out.Type = t
		if s.Nullable {
			out.Type = []string{t, "null"}
			if out.Enum != nil {
				out.Enum = append(out.Enum, nil)
			}
		}
	}
	return json.Marshal(out)
}

// jsonSchema turns a responseSchema into JSON Schema; one that cannot be read asks
// for JSON and nothing more.
func jsonSchema(raw []byte) []byte {
	var s openSchema
	if json.Unmarshal(raw, &s) != nil {
		return anyJSON
	}
	out, err := s.MarshalJSON()
	if err != nil {
		return anyJSON
	}
	return out
}
