package agents

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/internal/snippet"
)

// documented are the agents as docs/CLIENTS.md sets them up: a file of settings
// goes where the document says, relative to the home; of a shell's lines the
// exports count.
var documented = []struct {
	agent
	snippet string
	path    string   // of the file
	without []string // settings of prepare that the document's take the place of
	with    []string
}{
	{claude, "claude-code.sh", "", []string{"ANTHROPIC_BASE_URL="}, nil},
	{codex, "codex.toml", ".codex/config.toml", []string{"CODEX_HOME="}, nil},
	{opencode, "opencode.json", ".config/opencode/opencode.json", []string{"OPENCODE_CONFIG_CONTENT="}, []string{
		// What would ask a person, or name the session by another request.
		`OPENCODE_CONFIG_CONTENT={"autoupdate":false,"share":"disabled","permission":"allow","agent":{"title":{"disable":true}}}`, "OPENAI_API_KEY=sk-none"}},
	{gemini, "gemini-cli.sh", "", []string{"GOOGLE_GEMINI_BASE_URL="}, nil},
}

// An agent that is set up as its users are told does its task, once, although every
// answer is cut.
func TestDocumentedAgents(t *testing.T) {
	blocks, err := snippet.Read("../../docs/CLIENTS.md")
	if err != nil {
		t.Fatal(err)
	}
	outer := t
	var unbroken string
	for _, d := range documented {
		t.Run(d.snippet, func(t *testing.T) {
			at := slices.IndexFunc(blocks, func(b snippet.Block) bool { return b.Name == d.snippet })
			if at < 0 {
				t.Fatal("the document does not show it")
			}
			a := d.agent
			prepare := a.prepare
			a.prepare = func(t *testing.T, e errand) (args, env []string) {
				args, env = prepare(t, e)
				env = slices.DeleteFunc(env, func(v string) bool {
					return slices.ContainsFunc(d.without, func(name string) bool { return strings.HasPrefix(v, name) })
				})
				text, err := blocks[at].At(e.base)
				if err != nil {
					t.Fatal(err)
				}
				if d.path == "" {
					return args, slices.Concat(env, snippet.Exports(text), d.with)
				}
				write(t, text, e.home, filepath.FromSlash(d.path))
				return args, append(env, d.with...)
			}
			program := require(t, a)
			if unbroken == "" {
				unbroken = build(outer)
			}
			h := house{agent: a, program: program, unbroken: unbroken}
			m := h.measure(t, "unbroken", breakage{name: "cut once in the text", script: inText, hits: 2})
			if m.run.exit != 0 || m.run.transcript.final != a.answer || m.run.ran != 1 {
				t.Errorf("exit %d, the tool ran %d times, %q\n%s\n%s", m.run.exit, m.run.ran, m.run.transcript.final,
					strings.Join(m.run.transcript.seen, "\n"), m.run.stderr)
			}
		})
	}
}
