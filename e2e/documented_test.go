package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/internal/snippet"
)

// clientsDoc shows how clients are pointed at the proxy.
const clientsDoc = "../docs/CLIENTS.md"

// breaks is what happens to every turn that a snippet asks for.
const breaks = "attempt 1: rst in text 4"

// Every snippet of the document, run as it is printed there, gets through a broken
// stream the answer that it gets from a provider that is well.
func TestDocumentedClients(t *testing.T) {
	blocks, err := snippet.Read(clientsDoc)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, b := range blocks {
		run, ok := runners[filepath.Ext(b.Name)]
		if !ok {
			continue // a file of settings: see package agents
		}
		ran++
		t.Run(b.Name, func(t *testing.T) {
			t.Parallel()
			command := run(t)
			if command == nil {
				t.Logf("not run: this machine lacks what %s needs", b.Name)
				return
			}
			good := providerOf(t, "")
			want := command(t, b, good.URL())
			if len(want) < 40 {
				t.Fatalf("without a fault it printed %q", want)
			}
			bad := providerOf(t, breaks)
			p := serveProcess(t, binary(t), "memory", bad.URL())
			if got := command(t, b, p.base); got != want {
				t.Errorf("printed\n%s\nand without a fault\n%s\n%s", got, want, p.log)
			}
			if cut := story(bad.Log()); !strings.Contains(cut, "rst") {
				t.Errorf("nothing was cut: %s", cut)
			}
		})
	}
	if ran < 10 {
		t.Errorf("%s has %d snippets to run", clientsDoc, ran)
	}
}

// The document's table says of every snippet whether it is run. It says what is so.
func TestDocumentedClientsAreListed(t *testing.T) {
	blocks, err := snippet.Read(clientsDoc)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(clientsDoc)
	if err != nil {
		t.Fatal(err)
	}
	tested := map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\|[^|]*\|([^|]*)\|([^|]*)\|$`).FindAllStringSubmatch(string(doc), -1) {
		for _, name := range regexp.MustCompile("`([a-z_-]+\\.[a-z]+)`").FindAllStringSubmatch(row[1], -1) {
			tested[name[1]] = strings.TrimSpace(row[2])
		}
	}
	how := map[string]string{".go": "`make test`", ".ts": "`make clients test`", ".toml": "`make agents`", ".json": "`make agents`", ".yaml": "*read only*"}
	shells := map[string]string{"claude-code.sh": "`make agents`", "gemini-cli.sh": "`make agents`", "cline.sh": "*by hand*, with Cline CLI 3.0.65"}
	for _, b := range blocks {
		want := how[filepath.Ext(b.Name)]
		switch filepath.Ext(b.Name) {
		case ".sh":
			want = shells[b.Name]
		case ".py":
			want = "compiled, and run where `" + pythonModule(b) + "` is installed"
		}
		if got, ok := tested[b.Name]; !ok || got != want {
			t.Errorf("%s: the table says %q, not %q", b.Name, got, want)
		}
		if _, err := b.At("http://elsewhere"); err != nil {
			t.Error(err)
		}
		delete(tested, b.Name)
	}
	for name := range tested {
		t.Errorf("the table lists %s, which is not shown", name)
	}
}

// LiteLLM cannot be installed from npm or the Go proxy; its file is read at least.
func TestDocumentedLiteLLM(t *testing.T) {
	blocks, err := snippet.Read(clientsDoc)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks {
		if b.Name != "litellm.yaml" {
			continue
		}
		var file struct {
			Models []struct {
				Params struct {
					Model string `yaml:"model"`
					Base  string `yaml:"api_base"`
				} `yaml:"litellm_params"`
			} `yaml:"model_list"`
		}
		if err := yaml.Unmarshal([]byte(b.Text), &file); err != nil {
			t.Fatal(err)
		}
		bases := map[string]string{"openai": snippet.Home + "/v1", "anthropic": snippet.Home}
		for _, m := range file.Models {
			provider, _, _ := strings.Cut(m.Params.Model, "/")
			if m.Params.Base != bases[provider] {
				t.Errorf("%s: api_base %s", m.Params.Model, m.Params.Base)
			}
			delete(bases, provider)
		}
		if len(bases) > 0 {
			t.Errorf("no model of %v", bases)
		}
		return
	}
	t.Error("there is no litellm.yaml")
}

// providerOf is a provider of one snippet's own: its requests carry no marks by
// which turns could be told apart.
func providerOf(t *testing.T, script string) *faultinject.Server {
	t.Helper()
	parsed, err := faultinject.ParseScript([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	s, err := faultinject.New(faultinject.Config{Scenario: "text", Script: parsed})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// runCommand runs a snippet against a base URL and returns what it printed.
type runCommand func(t *testing.T, b snippet.Block, base string) string

// runners say how a language is run: nil if it cannot be, here.
var runners = map[string]func(*testing.T) runCommand{".go": inGo, ".ts": inTypeScript, ".py": inPython}

func inGo(*testing.T) runCommand {
	return func(t *testing.T, b snippet.Block, base string) string {
		program := filepath.Join(t.TempDir(), "snippet")
		build := exec.Command("go", "build", "-o", program, written(t, b, base, t.TempDir()))
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("go build: %v\n%s", err, out)
		}
		return printed(t, exec.Command(program), nil)
	}
}

// inTypeScript uses what Node reads of the language: all that the document uses
// of it is JavaScript too. Read from its standard input, a module finds packages
// from the directory it is run in.
func inTypeScript(t *testing.T) runCommand {
	path := needNode(t)
	return func(t *testing.T, b snippet.Block, base string) string {
		code, err := b.At(base)
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(path, "--input-type=module", "-")
		cmd.Dir = "clients"
		return printed(t, cmd, strings.NewReader(code))
	}
}

// inPython compiles, and runs where the SDK is installed.
func inPython(t *testing.T) runCommand {
	path, err := exec.LookPath("python3")
	if err != nil {
		if strings.Contains(os.Getenv("UNBROKEN_REQUIRE"), "python") {
			t.Fatalf("UNBROKEN_REQUIRE asks for Python: %v", err)
		}
		return nil
	}
	blocks, err := snippet.Read(clientsDoc)
	if err != nil {
		t.Fatal(err)
	}
	name := t.Name()[strings.LastIndex(t.Name(), "/")+1:]
	for _, b := range blocks {
		if b.Name != name {
			continue
		}
		compile := exec.Command(path, "-c", "import sys; compile(sys.stdin.read(), '"+name+"', 'exec')")
		compile.Stdin = strings.NewReader(b.Text)
		if out, err := compile.CombinedOutput(); err != nil {
			t.Fatalf("%s does not compile: %v\n%s", name, err, out)
		}
		if exec.Command(path, "-c", "import "+pythonModule(b)).Run() != nil {
			return nil
		}
	}
	return func(t *testing.T, b snippet.Block, base string) string {
		return printed(t, exec.Command(path, written(t, b, base, t.TempDir())), nil)
	}
}

// pythonModule is what a snippet needs: the module of its first import.
func pythonModule(b snippet.Block) string {
	from := regexp.MustCompile(`(?m)^from (\S+) import (\w+)`).FindStringSubmatch(b.Text)
	if from == nil {
		return ""
	}
	if from[1] == "google" { // a namespace, which others share
		return from[1] + "." + from[2]
	}
	return from[1]
}

// written puts a snippet into a directory.
func written(t *testing.T, b snippet.Block, base, dir string) string {
	t.Helper()
	code, err := b.At(base)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, b.Name)
	if err := os.WriteFile(path, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// printed runs a program with the keys that a user has, and nothing else of the
// environment but the search path, and returns its standard output.
func printed(t *testing.T, cmd *exec.Cmd, in *strings.Reader) string {
	t.Helper()
	if in != nil {
		cmd.Stdin = in
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "NO_PROXY=127.0.0.1", "NO_COLOR=1",
		"OPENAI_API_KEY=sk-e2e", "ANTHROPIC_API_KEY=sk-ant-e2e", "GEMINI_API_KEY=e2e"}
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out.Bytes(), complaints.Bytes())
	}
	return out.String()
}
