package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/unbroken-llm/unbroken/runs"
)

// A tool has an effect that anybody can see, and says what may become of it when
// nobody knows whether it took place.
type tool struct {
	name, about string
	recovery    string
	file        string // a line for each effect
}

var toolbox = []tool{
	{"pay", "Pay an amount. Money moves.", "never_replay", "payments.log"},
	{"note", "Take a note. The same note twice is no harm.", "replay", "notes.log"},
	{"job", "Start a job elsewhere, which can be asked for by its operation id.", "reconnect", "jobs.log"},
}

// parameters is the JSON schema of every tool.
var parameters = map[string]any{
	"type":                 "object",
	"properties":           map[string]any{"what": map[string]any{"type": "string"}},
	"required":             []string{"what"},
	"additionalProperties": false,
}

// policies is what the ledger is told of the tools.
func policies() map[string]runs.Policy {
	p := map[string]runs.Policy{}
	for _, t := range toolbox {
		p[t.name] = runs.Policy{Recovery: t.recovery}
	}
	return p
}

// tools have their effects in a directory.
type tools struct {
	dir string
	at  func(point string)
}

// execute has the effect of a call. With ask it first looks whether the operation was
// done already, as one would ask the other system.
func (t tools) execute(c call, op string, ask bool) (string, error) {
	for _, k := range toolbox {
		if k.name != c.Name {
			continue
		}
		path := filepath.Join(t.dir, k.file)
		if ask {
			switch b, err := os.ReadFile(path); {
			case err == nil && strings.Contains(string(b), op+" "):
				return "done before", nil
			case err != nil && !errors.Is(err, os.ErrNotExist):
				return "", err
			}
		}
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return "", err
		}
		t.at("before the effect of " + c.Name)
		_, err = fmt.Fprintf(f, "%s %s\n", op, c.Args)
		t.at("after the effect of " + c.Name)
		return "done", errors.Join(err, f.Close())
	}
	return "there is no tool " + c.Name, nil
}
