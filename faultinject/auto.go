package faultinject

import (
	"encoding/json"
	"strings"
)

// auto behaves plausibly for an agent that knows nothing of faults, such as
// Claude Code: it calls one declared tool, and once the result is there it
// answers with it. Requests without tools (titles, topics, probes) get a short
// text, or a document when they ask for one.
func auto(p Prompt, c Config) Answer {
	if len(p.Schema) > 0 || p.JSONMode {
		return structured(p, c)
	}
	if rs := p.results(); len(rs) > 0 {
		return say("Done. The command printed " + quote(clip(rs[len(rs)-1].Text)) + ", which is what was asked for. Nothing else needs to be changed.")
	}
	if p.ToolChoice != "none" {
		if k, ok := c.declaredCall(forced(p.Tools, p.ToolChoice)); ok {
			return call(text("I will run one command for this and then report what it printed."), k)
		}
	}
	if p.MaxTokens > 0 && p.MaxTokens < 32 || len(p.Tools) == 0 && len(p.question()) < 40 {
		return say("Saying hello")
	}
	return say(shortText)
}

// forced narrows tools to the one a tool_choice names.
func forced(tools []Tool, choice string) []Tool {
	for _, t := range tools {
		if t.Name == choice {
			return []Tool{t}
		}
	}
	return tools
}

// defaultCalls are valid arguments for the tools of well-known agents, in
// order of preference.
var defaultCalls = []ToolCall{
	{"Bash", `{"command":"echo hello","description":"say hello"}`},
	{"bash", `{"command":"echo hello","description":"say hello"}`},
	{"exec_command", `{"cmd":"echo hello"}`},
	{"shell", `{"command":["bash","-lc","echo hello"]}`},
	{"run_terminal_cmd", `{"command":"echo hello"}`},
	{"Write", `{"file_path":"hello.txt","content":"hello\n"}`},
	{"get_weather", `{"location":"Paris"}`},
}

// A ToolCall is one call that the auto and agent scenarios may make.
type ToolCall struct {
	Name string
	Args string // a JSON object; any text, if the tool takes that
}

// declaredCall picks the call to make: the first configured one whose tool is
// declared, else the first declared tool with arguments made up from its
// schema. It reports false when no tool is declared.
func (c Config) declaredCall(tools []Tool) (Block, bool) {
	for _, k := range append(append([]ToolCall(nil), c.Calls...), defaultCalls...) {
		for _, t := range tools {
			if t.Name == k.Name {
				return Block{Kind: t.blockKind(), Name: k.Name, Args: k.Args}, true
			}
		}
	}
	for _, t := range tools {
		if strings.HasPrefix(t.Name, "mcp__") {
			continue
		}
		args := instance(t.Schema)
		if json.Valid(args) {
			return Block{Kind: t.blockKind(), Name: t.Name, Args: string(args)}, true
		}
	}
	return Block{}, false
}

// blockKind is what a call of the tool is.
func (t Tool) blockKind() BlockKind {
	if t.Custom {
		return CustomBlock
	}
	return ToolBlock
}
