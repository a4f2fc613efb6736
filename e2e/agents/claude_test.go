package agents

import (
	"path/filepath"
	"testing"
	"time"
)

// The models: one that takes a prefill, one that has to be asked to go on, and one
// that in addition cannot be kept from thinking.
const (
	prefills = "claude-sonnet-4-5"
	asked    = "claude-opus-4-8"
	thinks   = "claude-fable-5"
)

// claude is Claude Code.
var claude = agent{
	name: "Claude Code", program: ".bin/claude", model: prefills, answer: answer("1"),
	prepare: prepareClaude, read: readClaude,
	alone: claudeAlone, behind: claudeBehind,
	hopeless: breakage{name: "cut every time", script: always, hits: 1, tries: 1},
}

// prepareClaude uses what its documentation offers for a machine without the
// internet; Bash is allowed by name, since root may not skip permissions.
func prepareClaude(_ *testing.T, e errand) (args, env []string) {
	return []string{"-p", task, "--model", e.model, "--allowedTools", "Bash",
			"--output-format", "stream-json", "--include-partial-messages", "--verbose"},
		[]string{"CLAUDE_CONFIG_DIR=" + filepath.Join(e.home, "claude"), "ANTHROPIC_BASE_URL=" + e.base, "ANTHROPIC_API_KEY=sk-ant-none",
			"DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
}

// claudeAlone is what it gets to see directly. Silence would take it ten
// minutes: that run shows what it has achieved when it is stopped.
var claudeAlone = []breakage{
	{name: "cut once after the head", script: head, hits: 2},
	{name: "cut once in the text", script: inText, hits: 2},
	{name: "cut once in the tool call", script: inCall, hits: 1},
	{name: "reset once in the tool call", script: resetCall, hits: 1},
	{name: "overloaded once in the text", script: overload, hits: 2},
	{name: "silent once in the text", script: silence, hits: 1, limit: 20 * time.Second},
	{name: "cut every time", script: always, hits: 1, limit: 40 * time.Second},
}

// claudeBehind is what unbroken has to hide.
var claudeBehind = []breakage{
	{name: "no fault"},
	{name: "cut once after the head", script: head, hits: 2},
	{name: "cut once in the text", script: inText, hits: 2},
	{name: "cut once inside an event", script: inEvent, hits: 2},
	{name: "cut once in the tool call", script: inCall, hits: 1},
	{name: "cut once before the finish", script: atFinish, hits: 2},
	{name: "reset once in the text", script: resetText, hits: 2},
	{name: "reset once in the tool call", script: resetCall, hits: 1},
	{name: "overloaded once before the stream", script: "every stream: status 529 retry-after 1 once", hits: 2},
	{name: "overloaded once in the text", script: overload, hits: 2},
	{name: "silent once in the text", script: silence, hits: 2},
	{name: "empty once", script: "every stream: empty once", hits: 2},
	{name: "cut three times in the text", script: thrice, hits: 6},

	{name: "cut once in the text, no prefill", script: inText, hits: 2, model: asked},
	{name: "cut once in the text, no prefill, starts over", script: inText, hits: 2, model: asked, seam: "restart"},
	{name: "cut once in the tool call, no prefill", script: inCall, hits: 1, model: asked},

	{name: "cut once in the text, after reasoning", script: inText, hits: 2, thinks: true},
	{name: "cut once in the tool call, after reasoning", script: inCall, hits: 1, model: asked, thinks: true},
	{name: "cut once in the reasoning", script: "every stream: rst in thinking 4 once", hits: 2, model: thinks, thinks: true},
}
