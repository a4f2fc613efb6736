package faultinject

import "strings"

// A request may choose its scenario by model name: "scenario/NAME", or
// "scenario/NAME@MODEL" to be treated as that model in everything else.
const scenarioModel = "scenario/"

// modelName returns the model whose abilities count.
func modelName(requested string) string {
	if rest, ok := strings.CutPrefix(requested, scenarioModel); ok {
		if _, model, ok := strings.Cut(rest, "@"); ok {
			return model
		}
	}
	return requested
}

// modelScenario returns the scenario a model name asks for, empty if none.
func modelScenario(requested string) string {
	rest, ok := strings.CutPrefix(requested, scenarioModel)
	if !ok {
		return ""
	}
	name, _, _ := strings.Cut(rest, "@")
	return name
}
