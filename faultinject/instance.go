package faultinject

import (
	"encoding/json"
	"sort"
)

// schemaNode is the part of JSON schema that tools and structured answers use.
type schemaNode struct {
	Type       any                        `json:"type"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	Items      json.RawMessage            `json:"items"`
	Enum       []json.RawMessage          `json:"enum"`
	Const      json.RawMessage            `json:"const"`
	AnyOf      []json.RawMessage          `json:"anyOf"`
	OneOf      []json.RawMessage          `json:"oneOf"`
	Minimum    *float64                   `json:"minimum"`
	MinItems   int                        `json:"minItems"`
}

// instance returns a small JSON document that fits schema: the required
// properties, each with a plausible value. References are not followed.
func instance(schema []byte) json.RawMessage {
	return fill(schema, "", 0)
}

func fill(schema []byte, name string, depth int) json.RawMessage {
	var n schemaNode
	if len(schema) == 0 || json.Unmarshal(schema, &n) != nil || depth > 16 {
		return json.RawMessage(`{}`)
	}
	switch {
	case n.Const != nil:
		return n.Const
	case len(n.Enum) > 0:
		return n.Enum[0]
	case len(n.AnyOf) > 0:
		return fill(n.AnyOf[0], name, depth+1)
	case len(n.OneOf) > 0:
		return fill(n.OneOf[0], name, depth+1)
	}
	switch typeOf(n) {
	case "string":
		return json.RawMessage(quote(sampleText(name)))
	case "integer", "number":
		if n.Minimum != nil {
			return mustJSON(*n.Minimum)
		}
		return json.RawMessage(`7`)
	case "boolean":
		return json.RawMessage(`true`)
	case "null":
		return json.RawMessage(`null`)
	case "array":
		items := make([]json.RawMessage, max(2, n.MinItems))
		for i := range items {
			items[i] = fill(n.Items, name, depth+1)
		}
		return mustJSON(items)
	}
	object := map[string]json.RawMessage{}
	names := n.Required
	if len(names) == 0 {
		for p := range n.Properties {
			names = append(names, p)
		}
		sort.Strings(names)
	}
	for _, p := range names {
		object[p] = fill(n.Properties[p], p, depth+1)
	}
	return mustJSON(object)
}

// typeOf returns the first type named; a list such as ["string","null"] is
// legal.
func typeOf(n schemaNode) string {
	switch t := n.Type.(type) {
	case string:
		return t
	case []any:
		if len(t) > 0 {
			s, _ := t[0].(string)
			return s
		}
	}
	if n.Items != nil {
		return "array"
	}
	return "object"
}

func sampleText(name string) string {
	switch name {
	case "command", "cmd":
		return "echo hello"
	case "description":
		return "Say hello"
	case "title":
		return "Saying hello"
	case "location", "city":
		return "Paris"
	default:
		return "sample " + name
	}
}

// mustJSON marshals a value built here, map keys sorted.
func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic("BUG: no JSON form: " + err.Error())
	}
	return b
}
