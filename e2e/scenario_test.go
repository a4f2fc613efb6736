package e2e

import (
	"encoding/json"

	"github.com/unbroken-llm/unbroken/faultinject"
)

// scenario is what is asked of the model, and where a stream of its answer is
// cut when a fault leaves the place open.
type scenario struct {
	name   string
	answer string // faultinject's name for it
	models models
	tools  bool
	schema bool
	thinks bool

	cut   string                         // the place
	cutIn map[faultinject.Dialect]string // where a dialect has no such place
	then  verdict                        // what a cut there leads to
	kept  int                            // calls that survive, if that is tool use
}

// models are those of one scenario where it depends on the model whether a turn is
// continued by a prefill or by asking. Chat and Responses have none to choose from.
type models struct{ messages, gemini, bedrock string }

var (
	prefills = models{"claude-sonnet-4-5", "gemini-3-pro-preview", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"}
	asks     = models{"claude-opus-4-8", "gemini-3.8-flash", "us.anthropic.claude-opus-4-8-v1"}
)

// inGemini is a place for Gemini, whose calls come whole.
func inGemini(place string) map[faultinject.Dialect]string {
	return map[faultinject.Dialect]string{faultinject.Gemini: place}
}

// The cuts reach every row of DESIGN §3: the text is continued (R1), a call is
// dropped and asked for again (R3), a complete call ends the turn (R2), and a cut
// in reasoning starts over (R4).
var scenarios = []*scenario{
	{name: "text", answer: "text", models: prefills, cut: "after text 4", then: healed},
	{name: "unicode", answer: "unicode", models: asks, cut: "after text 4", then: healed},
	{name: "tool", answer: "tool", models: prefills, tools: true, cut: "after tool-args 2", cutIn: inGemini("before tool"), then: healed},
	{name: "parallel", answer: "parallel", models: prefills, tools: true, cut: "after tool 2", cutIn: inGemini("before tool 2"), then: toolUse, kept: 1},
	{name: "thinking and tool", answer: "thinking-tool", models: prefills, tools: true, thinks: true, cut: "after thinking 3", then: healed},
	{name: "structured", answer: "structured", models: prefills, schema: true, cut: "after text 4", then: healed},
}

var weatherTool = toolSpec{
	Name: "get_weather", Description: "The weather at a place",
	Schema: json.RawMessage(`{"type":"object","properties":{"location":{"type":"string"},"unit":{"type":"string","enum":["celsius","fahrenheit"]}},"required":["location","unit"],"additionalProperties":false}`),
}

var reportSchema = json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"},"score":{"type":"number"},` +
	`"tags":{"type":"array","items":{"type":"string"}},"author":{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name","age"],"additionalProperties":false}},` +
	`"required":["title","score","tags","author"],"additionalProperties":false}`)

// job is the request.
func (s *scenario) job(d faultinject.Dialect) job {
	j := job{Model: "gpt-4.1", Prompt: "This is the case of " + s.name + ".", MaxTokens: 4096}
	switch d {
	case faultinject.Messages:
		j.Model = s.models.messages
	case faultinject.Gemini:
		j.Model = s.models.gemini
	case faultinject.Converse, faultinject.Invoke:
		j.Model = s.models.bedrock
	case faultinject.Responses:
		j.Model = "gpt-5.1"
	}
	if s.thinks && d != faultinject.Chat {
		j.Thinking = &thinking{Type: "enabled", Budget: 1024}
	}
	if s.tools {
		j.Tools = []toolSpec{weatherTool}
	}
	if s.schema {
		j.Schema = reportSchema
	}
	return j
}
