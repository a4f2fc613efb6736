package splice

import (
	"errors"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

func TestDocument(t *testing.T) {
	for _, c := range []struct {
		name, prefix, text string
		shape              Shape
		keep               int
		state              jsonwalk.State
	}{
		{"goes on", `{"a":`, `1`, AnyJSON, 1, jsonwalk.Incomplete},
		{"ends", `{"a":`, `1}`, AnyJSON, 2, jsonwalk.Complete},
		{"talks behind the end", `{"a":"x`, "y\"}\n\nHope this helps!", JSONObject, 3, jsonwalk.Complete},
		{"begins again", `{"a":`, `{"a":1}}`, JSONObject, 8, jsonwalk.Complete},
		{"begins again behind a value", `{"a":1`, `{"a":1}`, JSONObject, 0, jsonwalk.Invalid},
		{"a schema's array", `[1,`, `2]`, AnyJSON, 2, jsonwalk.Complete},
		{"an array is no object", `[1,`, `2]`, JSONObject, 0, jsonwalk.Invalid},
		{"an escape over the seam", `{"a":"\u00`, `e9"}`, AnyJSON, 4, jsonwalk.Complete},
		{"was complete", `{}`, ` more`, AnyJSON, 0, jsonwalk.Complete},
		{"a number ends with the text", ``, `12`, AnyJSON, 2, jsonwalk.Complete},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := NewDocument([]byte(c.prefix), c.shape)
			keep := 0
			for _, b := range []byte(c.text) {
				n, _ := d.Push([]byte{b})
				keep += n
			}
			if state := d.End(); keep != c.keep || state != c.state || d.State() != state {
				t.Errorf("byte by byte: keep %d %v, want %d %v", keep, state, c.keep, c.state)
			}
			d = NewDocument([]byte(c.prefix), c.shape)
			if keep, _ := d.Push([]byte(c.text)); keep != c.keep || d.End() != c.state {
				t.Errorf("in one piece: keep %d %v, want %d %v", keep, d.State(), c.keep, c.state)
			}
		})
	}
}

const person = `{"type":"object","properties":{"name":{"type":"string","pattern":"^[A-Z]"},"born":{"$ref":"#/$defs/year"}},
	"required":["name","born"],"additionalProperties":false,"$defs":{"year":{"type":"integer"}}}`

func TestSchema(t *testing.T) {
	s, err := NewSchema([]byte(person))
	if err != nil {
		t.Fatal(err)
	}
	if s.Loose() {
		t.Error("every pattern of the schema is readable")
	}
	for doc, good := range map[string]bool{
		`{"name":"Ada","born":1815}`:          true,
		`{"name":"Ada"}`:                      false,
		`{"name":"ada","born":1815}`:          false,
		`{"name":"Ada","born":1815,"x":null}`: false,
		`{"name":"Ada","born":18.5}`:          false,
		`{"name":"Ada","born":`:               false,
		`{"name":"Ada","born":1815} {}`:       false,
	} {
		if err := s.Check([]byte(doc)); (err == nil) != good {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

// A schema is the caller's text: it must not make the proxy read a file or open a connection.
func TestSchemaReachesNothingOutsideItself(t *testing.T) {
	for _, ref := range []string{"file:///etc/hostname", "http://127.0.0.1:1/s.json", "other.json", "../x"} {
		if _, err := NewSchema([]byte(`{"$ref":"` + ref + `"}`)); err == nil {
			t.Errorf("%s: compiled", ref)
		} else if strings.HasPrefix(ref, "f") && !errors.Is(err, errSealed) && !strings.Contains(err.Error(), errSealed.Error()) {
			t.Errorf("%s: refused for another reason: %v", ref, err)
		}
	}
	if _, err := NewSchema([]byte(`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`)); err != nil {
		t.Errorf("a published meta-schema: %v", err)
	}
}

func TestSchemaWithAPatternBeyondRE2StillChecksTheRest(t *testing.T) {
	s, err := NewSchema([]byte(`{"type":"object","properties":{"p":{"type":"string","pattern":"(?=.*x).*"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if !s.Loose() {
		t.Error("a pattern that cannot be read is not reported")
	}
	if err := s.Check([]byte(`{"p":"abc"}`)); err != nil {
		t.Errorf("good document: %v", err)
	}
	if s.Check([]byte(`{"p":1}`)) == nil {
		t.Error("a wrong type passes")
	}
}

func TestSchemaThatIsNone(t *testing.T) {
	for _, raw := range []string{``, `{`, `{"type":"wrong"}`, `7`} {
		if _, err := NewSchema([]byte(raw)); err == nil {
			t.Errorf("%q: compiled", raw)
		}
	}
}
