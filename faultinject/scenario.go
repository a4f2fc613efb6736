package faultinject

import (
	"fmt"
	"sort"
	"strings"
)

// scenarios is the table of what the model can be made to say. Each entry is a
// pure function of the prompt, so a repeated request gets the same answer.
var scenarios = map[string]func(Prompt, Config) Answer{
	"auto":       auto,
	"text":       func(Prompt, Config) Answer { return say(shortText) },
	"long":       func(_ Prompt, c Config) Answer { return say(longText(c.LongTokens)) },
	"code":       func(Prompt, Config) Answer { return say(codeText) },
	"unicode":    func(Prompt, Config) Answer { return say(unicodeText) },
	"whitespace": func(Prompt, Config) Answer { return say(whitespaceText) },
	"structured": structured,
	"refusal":    func(Prompt, Config) Answer { return refusal() },
	"tool":       func(p Prompt, _ Config) Answer { return call(text("Let me look that up."), weather("Paris")) },
	"tool-only":  func(Prompt, Config) Answer { return call(weather("Paris")) },
	"parallel": func(Prompt, Config) Answer {
		return call(text("Two places at once."), weather("Paris"), weather("Reykjavík"))
	},
	"no-args":         func(Prompt, Config) Answer { return call(Block{Kind: ToolBlock, Name: "list_files"}) },
	"big-tool":        func(Prompt, Config) Answer { return call(text("Writing the file."), bigCall()) },
	"text-after-tool": textAfterTool,
	"thinking":        func(Prompt, Config) Answer { return think(say(shortText)) },
	"thinking-tool":   func(Prompt, Config) Answer { return think(call(text("I will check."), weather("Paris"))) },
	"thinking-only":   thinkingOnly,
	"redacted":        redacted,
	"code-run":        codeRun,
	"grounded":        func(Prompt, Config) Answer { return grounded() },
	"blocked":         blocked,
	"custom-tool":     customTool,
	"web-search":      webSearch,
	"agent":           agent,
	"errands":         errands,
	"thinking-agent":  func(p Prompt, c Config) Answer { return think(auto(p, c)) },
}

// ScenarioNames returns the names a request or a script may use.
func ScenarioNames() []string {
	names := make([]string, 0, len(scenarios))
	for n := range scenarios {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// Scenario returns the whole answer that the named scenario gives to p.
func Scenario(name string, p Prompt, c Config) (Answer, error) {
	f, ok := scenarios[name]
	if !ok {
		return Answer{}, fmt.Errorf("unknown scenario %q: use one of %s", name, strings.Join(ScenarioNames(), ", "))
	}
	return f(p, c.withDefaults()), nil
}

const shortText = "The quick brown fox jumps over the lazy dog, then rests under an old oak tree. " +
	"When the sun goes down, it walks home along the river, counting the stars as they appear one after another."

const codeText = "Here is a small program:\n\n```go\npackage main\n\nimport \"fmt\"\n\nfunc main() {\n\tfor i := range 3 {\n\t\tfmt.Println(\"line\", i)\n\t}\n}\n```\n\n" +
	"It prints three lines. Run it with `go run .` and change the number to print more."

const unicodeText = "日本語の文章です。絵文字も入ります😀👩‍👩‍👧‍👦🇫🇷。Ünïcödé, \"quotes\", back\\slash, tab\there, \u2028line separator, and <b>&amp;</b> — 終わり🎉。"

const whitespaceText = "A list:\n\n- one\n- two\n\n\n    indented by four\n\n- three  \n- very very good\n\nThe end.\n"

// longText is about n tokens of prose in which no sentence occurs twice, so that a
// repetition at a seam can be told from the text itself.
func longText(n int) string {
	var b strings.Builder
	for i, have := 1, 0; have < n; i++ {
		s := fmt.Sprintf("Sentence %d tells of %s that crossed the %s at hour %d. ", i, nouns[i%len(nouns)], places[(i/len(nouns))%len(places)], i*7%24)
		b.WriteString(s)
		have += len(tokens(s, 0))
	}
	return strings.TrimSpace(b.String())
}

var (
	nouns  = []string{"a grey heron", "two merchants", "an old clock", "the last train", "a paper boat", "seven monks", "the new moon"}
	places = []string{"harbour", "frozen lake", "market", "high pass", "orchard", "silent desert"}
)

func say(s string) Answer {
	return Answer{Blocks: []Block{text(s)}, Finish: FinishStop}
}

func text(s string) Block { return Block{Kind: TextBlock, Text: s} }

func call(blocks ...Block) Answer { return Answer{Blocks: blocks, Finish: FinishTool} }

func weather(place string) Block {
	return Block{Kind: ToolBlock, Name: "get_weather", Args: `{"location": ` + quote(place) + `, "unit": "celsius"}`}
}

func bigCall() Block {
	return Block{Kind: ToolBlock, Name: "write_file", Args: `{"path": "notes/story.md", "content": ` + quote(longText(120)) + `, "mode": {"create": true, "bits": [6, 4, 4]}}`}
}

func think(a Answer) Answer {
	a = a.clone()
	a.Blocks = append([]Block{{Kind: ThinkingBlock, Text: "The user wants a good answer. I weigh two ways of giving one, and choose the shorter."}}, a.Blocks...)
	return a
}

func thinkingOnly(Prompt, Config) Answer {
	a := think(Answer{Finish: FinishStop})
	return a
}

func redacted(Prompt, Config) Answer {
	a := think(say(shortText))
	a.Blocks = append([]Block{{Kind: RedactedBlock, Text: Redact("a")}}, a.Blocks...)
	return a
}

func refusal() Answer {
	return Answer{Blocks: []Block{{Kind: RefusalBlock, Text: "I can't help with that."}}, Finish: FinishRefusal}
}

// customTool calls a tool that takes any text. Only Responses has them here;
// elsewhere it is an ordinary one.
func customTool(p Prompt, _ Config) Answer {
	if p.Dialect != Responses {
		return call(text("Let me look that up."), weather("Paris"))
	}
	k := Block{Kind: CustomBlock, Name: "write_sql", Args: "SELECT name\nFROM users\nWHERE age > 25 AND city = 'Reykjavík';"}
	for _, t := range p.Tools {
		if t.Custom {
			k.Name = t.Name
		}
	}
	return call(text("A query will tell."), k)
}

// webSearch answers from a search that the provider makes, and cites what it
// found. Dialects without such a search get the answer alone.
func webSearch(Prompt, Config) Answer {
	source := Block{Kind: TextBlock, Text: shortText + " So says the field guide.", Cites: []Cite{
		{Phrase: "The quick brown fox", Title: "Foxes", URL: "https://example.com/foxes"},
		{Phrase: "the field guide", Title: "A field guide", URL: "https://example.com/guide?a=1&b=2"},
	}}
	return Answer{Blocks: []Block{{Kind: SearchBlock, Text: "where do foxes rest"}, source}, Finish: FinishStop}
}

func textAfterTool(Prompt, Config) Answer {
	return call(text("First the weather. "), weather("Paris"), text("While that runs, a word on umbrellas: take one."))
}

// structured answers the request's schema, or a document of its own.
func structured(p Prompt, _ Config) Answer {
	if len(p.Schema) > 0 {
		return say(string(instance(p.Schema)))
	}
	return say(`{"title": "A long report", "sections": [{"heading": "One", "body": ` + quote(shortText) + `, "score": 0.75}, ` +
		`{"heading": "Two \"quoted\"", "body": ` + quote(unicodeText) + `, "score": -12}], "complete": true, "next": null}`)
}

// agent calls a tool until its result is there, then answers.
func agent(p Prompt, c Config) Answer {
	if rs := p.results(); len(rs) > 0 {
		return say("The tool answered " + quote(clip(rs[len(rs)-1].Text)) + ". So the weather is settled, and the task is done.")
	}
	if k, ok := c.declaredCall(p.Tools); ok {
		return call(text("I will use a tool for this."), k)
	}
	return call(text("I will use a tool for this."), weather("Paris"))
}

// errands makes every configured call whose tool is declared, all in one batch, and
// once more when the results are there; then it answers.
func errands(p Prompt, c Config) Answer {
	batches := 0
	for _, t := range p.Turns {
		if len(t.Calls) > 0 {
			batches++
		}
	}
	a := call(text("Some errands."))
	for _, k := range c.Calls {
		for _, t := range p.Tools {
			if t.Name == k.Name {
				a.Blocks = append(a.Blocks, Block{Kind: t.blockKind(), Name: k.Name, Args: k.Args})
			}
		}
	}
	if batches >= 2 || len(a.Blocks) == 1 {
		return say("All errands are done.")
	}
	return a
}

// clip shortens what a tool said to what an answer would quote.
func clip(s string) string {
	s = strings.TrimSpace(s)
	if r := []rune(s); len(r) > 200 {
		s = string(r[:200])
	}
	return s
}
