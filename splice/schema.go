package splice

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaAt names the caller's schema inside the validator, below a host that cannot exist (RFC 6761). It is hierarchical, so
// that a relative $ref resolves to another name, which is refused, and not to the schema itself.
const schemaAt = "https://schema.invalid/schema"

// Schema is a caller's JSON Schema, compiled to check a spliced answer before its terminal is let through. The validator
// reaches neither network nor files: a $ref beyond the schema itself and the published meta-schemas is an error.
type Schema struct {
	compiled *jsonschema.Schema
	loose    bool
}

// NewSchema compiles raw, the schema itself (for OpenAI response_format.json_schema.schema). An error says that the schema
// cannot be checked here, not that the request is wrong: providers know dialects of their own. A Document still
// holds then.
func NewSchema(raw []byte) (*Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	s := &Schema{}
	c := jsonschema.NewCompiler()
	c.UseLoader(sealed{})
	c.UseRegexpEngine(s.pattern)
	if err := c.AddResource(schemaAt, doc); err != nil {
		return nil, fmt.Errorf("add schema: %w", err)
	}
	if s.compiled, err = c.Compile(schemaAt); err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	return s, nil
}

// Loose reports that the schema has patterns this validator cannot read (RE2 has no look-around); they match everything.
func (s *Schema) Loose() bool { return s.loose }

// Check reports what is wrong with doc, a complete document, or nil.
func (s *Schema) Check(doc []byte) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(doc))
	if err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	if err := s.compiled.Validate(v); err != nil {
		return fmt.Errorf("check document: %w", err)
	}
	return nil
}

// pattern compiles a regular expression of ECMA-262 as far as RE2 goes. A pattern it cannot read must not make a
// good answer fail.
func (s *Schema) pattern(text string) (jsonschema.Regexp, error) {
	re, err := regexp.Compile(text)
	if err != nil {
		s.loose = true
		return anything(text), nil
	}
	return re, nil
}

type anything string

func (anything) MatchString(string) bool { return true }
func (a anything) String() string        { return string(a) }

var errSealed = errors.New("schema refers to another document")

// sealed loads nothing.
type sealed struct{}

// Load refuses.
func (sealed) Load(url string) (any, error) { return nil, fmt.Errorf("%w: %s", errSealed, url) }
