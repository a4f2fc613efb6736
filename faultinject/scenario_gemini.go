package faultinject

// What only Gemini's dialects have a form for: the others say the text alone.

// codeRun is an answer in whose middle the provider runs code.
func codeRun(p Prompt, _ Config) Answer {
	a := say("I will compute it. ")
	if hasHosted(p.Dialect) {
		a.Blocks = append(a.Blocks, Block{Kind: CodeBlock, Args: "result = 65465 - 6544 * 65464\nprint(result)", Text: "-428330951\n"})
	}
	a.Blocks = append(a.Blocks, text("The result of 65465 - 6544 × 65464 is **-428,330,951**, which the code printed."))
	return a
}

// grounded is an answer that stands on what a search found.
func grounded() Answer {
	a := say("In San Francisco it is partly cloudy, around 20 °C. Rain is not expected before the evening.")
	a.Sources = []Source{{"https://weather.example/sf", "weather.example"}, {"https://news.example/bay-area", "news.example"}}
	return a
}

// blocked is a prompt that is refused as such, in a 200.
func blocked(p Prompt, _ Config) Answer {
	if hasHosted(p.Dialect) {
		return Answer{Finish: FinishBlocked}
	}
	return refusal()
}

func hasHosted(d Dialect) bool { return d == Gemini || d == Interactions }
