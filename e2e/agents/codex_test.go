package agents

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"
)

// Codex has two ways to call its tools, by model: as functions that the request
// declares, and by a script for its interpreter, which is a custom tool that an
// item of the input declares.
const (
	byFunction = "gpt-5.5"
	byScript   = "gpt-6.2-sol"
)

// codex is Codex CLI with functions.
var codex = agent{
	name: "Codex CLI", program: ".bin/codex", model: byFunction,
	answer:  answer(`Chunk ID: …\nWall time: … seconds\nProcess exited with code 0\nOriginal token count: 1\nOutput:\n1`),
	prepare: prepareCodex, read: readCodex,
	alone: codexAlone, behind: codexBehind,
	hopeless: breakage{name: "cut every time", script: always, hits: 1, tries: 1},
}

// codexCode is Codex CLI with its interpreter.
var codexCode = agent{
	name: "Codex CLI, code mode", program: ".bin/codex", model: byScript,
	answer:  answer(`Script completed\nWall time … seconds\nOutput:\n1`),
	prepare: prepareCodex, read: readCodex,
	behind: []breakage{
		{name: "no fault"},
		{name: "cut once in the text", script: inText, hits: 2},
		{name: "cut once in the script", script: inCall, hits: 1},
		{name: "reset once in the script", script: resetCall, hits: 1},
		{name: "cut once before the finish", script: atFinish, hits: 2},
		{name: "cut once in the script, after reasoning", script: inCall, hits: 1, thinks: true},
	},
}

// codexBuiltIn is Codex CLI with the provider that it brings, of which only the base
// URL is another. It asks for a WebSocket first, and goes on over HTTP when unbroken
// says at once that it has none.
var codexBuiltIn = agent{
	name: "Codex CLI, built-in provider", program: ".bin/codex", model: byFunction,
	answer:  codex.answer,
	prepare: prepareCodexBuiltIn, read: readCodex,
	behind: []breakage{
		{name: "no fault"},
		{name: "cut once in the text", script: inText, hits: 2},
		{name: "cut once in the tool call", script: inCall, hits: 1},
	},
}

// prepareCodexBuiltIn leaves the provider as it is, and a key where codex login
// --with-api-key puts it.
func prepareCodexBuiltIn(t *testing.T, e errand) (args, env []string) {
	dir := filepath.Join(e.home, "codex")
	write(t, fmt.Sprintf("model = %q\nopenai_base_url = %q\nmodel_reasoning_summary = \"detailed\"\ncheck_for_update_on_startup = false\n", e.model, e.base+"/v1"), dir, "config.toml")
	write(t, `{"auth_mode":"apikey","OPENAI_API_KEY":"sk-none"}`, dir, "auth.json")
	return codexArgs, []string{"CODEX_HOME=" + dir}
}

var codexArgs = []string{"exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", task}

// prepareCodex names unbroken as a provider, as its documentation says for one
// that is not OpenAI. Commands run without a sandbox: a container is one.
func prepareCodex(t *testing.T, e errand) (args, env []string) {
	settings := fmt.Sprintf(`model = %q
model_provider = "unbroken"
model_reasoning_summary = "detailed"
check_for_update_on_startup = false

[model_providers.unbroken]
name = "unbroken"
base_url = %q
env_key = "OPENAI_API_KEY"
wire_api = "responses"
`, e.model, e.base+"/v1")
	if e.idle > 0 {
		settings += fmt.Sprintf("stream_idle_timeout_ms = %d\n", e.idle.Milliseconds())
	}
	dir := filepath.Join(e.home, "codex")
	write(t, settings, dir, "config.toml")
	return codexArgs, []string{"CODEX_HOME=" + dir, "OPENAI_API_KEY=sk-none"}
}

// impatient is shorter than the silence of a provider that still goes on.
const (
	impatient = 2 * time.Second
	pause     = "every stream: stall 5s in text 4 once"
)

// codexAlone is what it gets to see directly: it sends its prompt again, five times
// and every time longer after.
var codexAlone = []breakage{
	{name: "cut once after the head", script: head, hits: 2},
	{name: "cut once in the text", script: inText, hits: 2},
	{name: "cut once in the tool call", script: inCall, hits: 1},
	{name: "overloaded once in the text", script: overload, hits: 2},
	{name: "silent for longer than it waits", script: pause, hits: 2, idle: impatient},
	{name: "cut every time in the text", script: "attempt *: fin in text 4", hits: 1},
	{name: "cut every time", script: always, hits: 1},
}

// codexBehind is what unbroken has to hide.
var codexBehind = []breakage{
	{name: "no fault"},
	{name: "cut once after the head", script: head, hits: 2},
	{name: "cut once in the text", script: inText, hits: 2},
	{name: "cut once inside an event", script: inEvent, hits: 2},
	{name: "cut once in the tool call", script: inCall, hits: 1},
	{name: "cut once before the finish", script: atFinish, hits: 2},
	{name: "reset once in the text", script: resetText, hits: 2},
	{name: "reset once in the tool call", script: resetCall, hits: 1},
	{name: "overloaded once before the stream", script: "every stream: status 503 retry-after 1 once", hits: 2},
	{name: "limited once before the stream", script: "every stream: status 429 retry-after 1 once", hits: 2},
	{name: "overloaded once in the text", script: overload, hits: 2},
	{name: "silent once in the text", script: silence, hits: 2},
	{name: "silent for longer than it waits", script: pause, hits: 2, idle: impatient, patient: true},
	{name: "empty once", script: "every stream: empty once", hits: 2},
	{name: "cut three times in the text", script: thrice, hits: 6},
	{name: "cut once in the text, starts over", script: inText, hits: 2, seam: "restart"},
	{name: "cut once in the text, after reasoning", script: inText, hits: 2, thinks: true},
	{name: "cut once in the tool call, after reasoning", script: inCall, hits: 1, thinks: true},
	{name: "cut once in the reasoning", script: "every stream: rst in thinking 4 once", hits: 2, thinks: true},
}
