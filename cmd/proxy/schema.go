package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/unbroken-llm/unbroken/proxy"
)

// schemaURL is where editors find the schema, and what the example file names.
const schemaURL = "https://raw.githubusercontent.com/unbroken-llm/unbroken/main/docs/unbroken.schema.json"

// schema is a JSON schema, of draft 7, which is what editors know best. It is for their
// help: it refuses nothing that the program takes, and cannot know all that the program
// refuses.
type schema map[string]any

// Patterns of texts. The ranges behind them are the program's to check.
const (
	durationPattern = `(\+?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)`
	sizePattern     = `^\s*\+?[0-9]+\s*(GiB|MiB|KiB|B)?$`
	headerPattern   = "[!#$%&'*+.^_`|~0-9A-Za-z-]+"
	urlPattern      = `^([hH][tT][tT][pP][sS]?|[hH]2[cC])://`
	namePattern     = `^[A-Za-z0-9._-]{1,64}$`
)

// writeSchema writes the schema of the file. Its keys are the table's.
func writeSchema(to io.Writer) error {
	props := schema{}
	table := fields(&settings{}, nil)
	for i := range table {
		f := &table[i]
		s := f.schema()
		s["description"] = fmt.Sprintf("%s (--%s, %s)", f.doc, f.flag(), f.env())
		if f.def != "" {
			s["default"] = natural(f.def)
		}
		props[f.key] = s
	}
	e := json.NewEncoder(to)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(schema{
		"$schema": "http://json-schema.org/draft-07/schema#", "$id": schemaURL,
		"title": "Unbroken", "description": "Settings of unbroken, the proxy that heals broken LLM streams.",
		"type": []string{"object", "null"}, "additionalProperties": false, "properties": props,
	})
}

// natural is a default as YAML reads it.
func natural(text string) any {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	if b, err := strconv.ParseBool(text); err == nil {
		return b
	}
	return text
}

// schema is what a field may be. One that may be empty may be null, which is how YAML reads
// nothing.
func (f *field) schema() schema {
	var s schema
	switch f.key {
	case keyUpstreams:
		return upstreamsSchema()
	case keyRoutes:
		return routesSchema()
	case "url":
		s = text(urlPattern)
	default:
		s = schemaOf(f.value)
	}
	if types, ok := s["type"].([]string); ok && f.def == "" && f.value.set("") == nil {
		s["type"] = slices.Concat(types, []string{"null"})
	}
	return s
}

// scalars are what may be written for a text: what YAML takes for a number is one here.
var scalars = []string{"string", "number", "boolean"}

// text is a string, and no other scalar, of a pattern.
func text(pattern string) schema { return schema{"type": []string{"string"}, "pattern": pattern} }

// number is a whole number between bounds, or a text of a pattern.
func number[N int | int64](pattern string, min, max N) schema {
	return schema{"type": []string{"integer", "string"}, "minimum": min, "maximum": max, "pattern": pattern}
}

func schemaOf(v value) schema {
	switch v := v.(type) {
	case duration:
		pattern := durationPattern
		if v.off {
			pattern += "|" + off
		}
		if v.min == 0 {
			return number("^("+pattern+"|0)$", 0, 0)
		}
		return text("^(" + pattern + ")$")
	case size[int]:
		return number(sizePattern, v.min, v.max)
	case size[int64]:
		return number(sizePattern, v.min, v.max)
	case count:
		return number(`^[+-]?[0-9]+$`, v.min, v.max)
	case choice:
		return schema{"enum": v.among}
	case level:
		return schema{"enum": levels}
	case protocol:
		return schema{"enum": protocols}
	case boolean:
		return schema{"type": []string{"boolean", "string"}, "pattern": "^(true|false)$"}
	case address:
		if v.off {
			return text("^(" + off + "|.*:[0-9]{1,5})$")
		}
		return text("^.*:[0-9]{1,5}$")
	case headerName:
		return schema{"type": scalars, "pattern": "^(" + headerPattern + ")?$"}
	case storeValue:
		return text("^(" + storeMemory + "|" + storeFile + ".+|[A-Za-z0-9+.-]+://.+)$")
	case forwardProxy:
		return text("^(" + off + "|[A-Za-z0-9]+://.+)?$")
	case endpoint:
		return text("^([hH][tT][tT][pP][sS]?://.+)?$")
	case path, freeText, upstreamURL, secret, sealKeys:
		return schema{"type": scalars}
	}
	panic(fmt.Sprintf("BUG: the schema of a %T is not known", v))
}

// mapping is a mapping with the keys of a table.
func mapping(table []field, more schema, required ...string) schema {
	for i := range table {
		s := table[i].schema()
		s["description"] = table[i].doc
		more[table[i].key] = s
	}
	return schema{"type": "object", "additionalProperties": false, "properties": more, "required": required}
}

func upstreamsSchema() schema {
	headers := schema{
		"type": "object", "description": "Added to every request; each is env:NAME, file:PATH or the value itself.",
		"propertyNames":        text("^" + headerPattern + "$"),
		"additionalProperties": schema{"type": slices.Concat(scalars, []string{"null"})},
	}
	one := mapping((&provider{}).fields(nil), schema{"headers": headers}, "url")
	return schema{
		"type": []string{"object", "null", "string"}, "maxLength": 0, "propertyNames": text(namePattern),
		"additionalProperties": schema{"anyOf": []schema{text(urlPattern), one}},
	}
}

func routesSchema() schema {
	named := schema{"type": []string{"string"}, "description": "The upstream."}
	target := schema{
		"type": "object", "additionalProperties": false, "required": []string{"upstream"},
		"properties": schema{
			"upstream": named,
			"model":    schema{"type": []string{"string", "number", "null"}, "description": "Sent in place of the caller's."},
			"for":      schema{"enum": []any{proxy.ForOverflow, nil}, "description": "Keeps the target for prompts that are too long for the others."},
		},
	}
	targets := schema{"type": "array", "minItems": 1, "description": "In order: a turn that cannot go on at one goes on at the next.", "items": schema{"anyOf": []schema{named, target}}}
	return schema{"type": []string{"array", "null", "string"}, "maxLength": 0, "items": mapping((&journey{}).fields(), schema{"targets": targets}, "model", "targets")}
}
