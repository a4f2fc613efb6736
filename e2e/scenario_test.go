package e2e

import "encoding/json"

// scenario is what is asked of the model, and where a stream of its answer is
// cut when a fault leaves the place open.
type scenario struct {
	name   string
	answer string // faultinject's name for it
	model  string // of Messages: prefill and asked continuation both occur
	tools  bool
	schema bool
	thinks bool

	cut  string  // the place
	then verdict // what a cut there leads to
	kept int     // calls that survive, if that is tool use
}

// The cuts reach every row of DESIGN §3: the text is continued (R1), a call is
// dropped and asked for again (R3), a complete call ends the turn (R2), and a cut
// in reasoning starts over (R4).
var scenarios = []*scenario{
	{name: "text", answer: "text", model: "claude-sonnet-4-5", cut: "after text 4", then: healed},
	{name: "unicode", answer: "unicode", model: "claude-opus-4-8", cut: "after text 4", then: healed},
	{name: "tool", answer: "tool", model: "claude-sonnet-4-5", tools: true, cut: "after tool-args 2", then: healed},
	{name: "parallel", answer: "parallel", model: "claude-sonnet-4-5", tools: true, cut: "after tool 2", then: toolUse, kept: 1},
	{name: "thinking and tool", answer: "thinking-tool", model: "claude-sonnet-4-5", tools: true, thinks: true, cut: "after thinking 3", then: healed},
	{name: "structured", answer: "structured", model: "claude-sonnet-4-5", schema: true, cut: "after text 4", then: healed},
}

var weatherTool = toolSpec{
	Name: "get_weather", Description: "The weather at a place",
	Schema: json.RawMessage(`{"type":"object","properties":{"location":{"type":"string"},"unit":{"type":"string","enum":["celsius","fahrenheit"]}},"required":["location","unit"],"additionalProperties":false}`),
}

var reportSchema = json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"},"score":{"type":"number"},` +
	`"tags":{"type":"array","items":{"type":"string"}},"author":{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name","age"],"additionalProperties":false}},` +
	`"required":["title","score","tags","author"],"additionalProperties":false}`)

// job is the request.
func (s *scenario) job(chat bool) job {
	j := job{Model: "gpt-4.1", Prompt: "This is the case of " + s.name + ".", MaxTokens: 4096}
	if !chat {
		j.Model = s.model
		if s.thinks {
			j.Thinking = &thinking{Type: "enabled", Budget: 1024}
		}
	}
	if s.tools {
		j.Tools = []toolSpec{weatherTool}
	}
	if s.schema {
		j.Schema = reportSchema
	}
	return j
}
