package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/unbroken-llm/unbroken/internal/golden"
)

// schemaOfFile compiles what the program prints.
func schemaOfFile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	var b bytes.Buffer
	if err := writeSchema(&b); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "../../docs/unbroken.schema.json", b.Bytes())
	doc, err := jsonschema.UnmarshalJSON(&b)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource(schemaURL, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(schemaURL)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// seen is what an editor makes of a file.
func seen(t *testing.T, s *jsonschema.Schema, text string) error {
	t.Helper()
	b, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

// taken is what the program makes of it.
func taken(t *testing.T, text string) error {
	t.Helper()
	name := filepath.Join(t.TempDir(), "some.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := nothing()
	env.vars = []string{"LOCAL_API_KEY=sk-local"}
	if l := load(env, origin{place: "--config", key: name}, nil); len(l.problems) > 0 {
		return l.problems
	}
	return nil
}

func TestSchemaTakesTheExample(t *testing.T) {
	s := schemaOfFile(t)
	var b bytes.Buffer
	writeExample(&b)
	for name, text := range map[string]string{"as it is": b.String(), "without its comment marks": uncommented(b.String()), "empty": "{}"} {
		if err := seen(t, s, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !strings.HasPrefix(b.String(), "# yaml-language-server: $schema="+s.Location[:len(schemaURL)]+"\n") {
		t.Error("the example does not name the schema")
	}
}

// A slip that the schema can know is underlined, and the program refuses it, too.
func TestSchemaRefusesWhatTheProgramDoes(t *testing.T) {
	s := schemaOfFile(t)
	for name, text := range map[string]string{
		"an unknown key":              "idel: 3s",
		"no unit":                     "idle: 3",
		"no duration":                 "idle: soon",
		"off where there is no off":   "hold: off",
		"a negative number":           "max_recoveries: -1",
		"a fraction":                  "max_recoveries: 1.5",
		"a size in megs":              "max_body: 64 megs",
		"a size that is too small":    "max_body: 1",
		"an unknown level":            "log_level: loud",
		"a port alone":                "listen: 8790",
		"an unknown store":            "store: nonsense",
		"no boolean":                  "ledger: perhaps",
		"a list for a value":          "idle: [3s]",
		"nothing for a value":         "drain:",
		"a list of upstreams":         "upstreams: [a]",
		"an upstream without a URL":   "upstreams: {a: {http1: true}}",
		"an upstream with a bad URL":  "upstreams: {a: ftp://example.com}",
		"a bad name":                  "upstreams: {'a/b': 'https://example.com'}",
		"an unknown engine":           "upstreams: {a: {url: 'https://example.com', engine: steam}}",
		"an unknown key of upstreams": "upstreams: {a: {url: 'https://example.com', credentail: x}}",
		"a header's name":             "upstreams: {a: {url: 'https://example.com', headers: {'X Team': x}}}",
		"a mapping of routes":         "routes: {a: b}",
		"a route without targets":     "routes: [{model: a}]",
		"a route without a model":     "routes: [{targets: [openai]}]",
		"an empty list of targets":    "routes: [{model: a, targets: []}]",
		"an unknown restriction":      "routes: [{model: a, targets: [openai, {upstream: openai, model: b, for: fun}]}]",
		"an unknown key of routes":    "routes: [{modle: a, model: b, targets: [openai]}]",
		"a proxy without a scheme":    "proxy: proxy.internal",
	} {
		if err := seen(t, s, text); err == nil {
			t.Errorf("%s: the schema takes %s", name, text)
		}
		if err := taken(t, text); err == nil {
			t.Errorf("%s: the program takes %s", name, text)
		}
	}
}

// What the program takes, the schema never refuses: each key with each of these values.
func TestSchemaRefusesNothingThatTheProgramTakes(t *testing.T) {
	s := schemaOfFile(t)
	values := []string{
		"", `""`, "0", "1", "+3", "300", "5000000", `"5"`, "1.5", "1.5h", ".5s", "1h30m", "250us", "3 MiB", "64KiB", "10B", "off", "true", `"true"`, "debug", "json",
		"127.0.0.1:0", "localhost:1", `":8790"`, "memory", "file:/tmp", "redis://127.0.0.1:1/2", "X-Tenant", "auto", "grpc", "http://h:4317", "HTTPS://h:1",
		"socks5://u:p@h:1", "env:LOCAL_API_KEY", "a-long-enough-key-for-the-hash", "1234567890123456", "chat", "vllm", "openai", "https://example.com",
		strings.Repeat("0f", 32), "[openai]", "[openai, {upstream: openai, model: b, for: context_overflow}]", "{X-A: 1, X-B: }",
	}
	n := 0
	try := func(text string) {
		t.Helper()
		if taken(t, text) != nil {
			return
		}
		n++
		if err := seen(t, s, text); err != nil {
			t.Errorf("the program takes it and the schema does not:\n%s\n%v", text, err)
		}
	}
	for _, v := range values {
		for _, f := range fields(&settings{}, nil) {
			try(f.key + ": " + v)
		}
		for _, f := range (&provider{}).fields(nil) {
			try(fmt.Sprintf("upstreams:\n  a:\n    %s: %s\n    url: https://example.com", f.key, v))
		}
		for _, key := range []string{"url", "headers"} {
			try(fmt.Sprintf("upstreams:\n  a:\n    %s: %s\n    http1: true", key, v))
			try(fmt.Sprintf("upstreams:\n  a:\n    url: https://example.com\n    %s: %s", key, v))
		}
		try("upstreams:\n  a: " + v)
		for _, f := range (&journey{}).fields() {
			try(fmt.Sprintf("routes:\n  - targets: [openai]\n    %s: %s\n    model: a", f.key, v))
		}
		try("routes:\n  - model: a\n    targets: " + v)
	}
	if n < 200 {
		t.Errorf("only %d values were taken: the test tries nothing", n)
	}
}
