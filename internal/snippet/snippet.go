// Package snippet reads the named code of a document, so that tests can run it as
// it stands there.
//
// Its law: what is run is what is printed. A block is named in the info string of
// its fence, behind the language, which is where CommonMark has room for it and
// no renderer shows it:
//
//	```go openai.go
//
// Only addresses are replaced, by At. std only.
package snippet

import (
	"fmt"
	"os"
	"strings"
)

// Block is one named block of code.
type Block struct {
	Lang string // the first word of the info string
	Name string // the second
	Text string
	Line int // of the fence, from 1
}

// Read returns the named blocks of a document in their order. Blocks without a
// name are left out; two of one name, or one that is not closed, are an error.
func Read(path string) ([]Block, error) {
	doc, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	blocks, err := parse(string(doc))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return blocks, nil
}

const fence = "```"

func parse(doc string) (blocks []Block, err error) {
	var open *Block
	seen := map[string]bool{}
	n := 0
	for line := range strings.Lines(doc) {
		n++
		info, fenced := strings.CutPrefix(strings.TrimRight(line, "\r\n"), fence)
		switch {
		case !fenced && open != nil:
			open.Text += line
		case !fenced:
		case open == nil:
			words := append(strings.Fields(info), "", "")
			open = &Block{Lang: words[0], Name: words[1], Line: n}
		case info == "":
			if open.Name != "" {
				if seen[open.Name] {
					return nil, fmt.Errorf("line %d: a second block is named %s", open.Line, open.Name)
				}
				seen[open.Name] = true
				blocks = append(blocks, *open)
			}
			open = nil
		default:
			open.Text += line
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: the block is not closed", open.Line)
	}
	return blocks, nil
}

// Home is the address that documents use for a proxy with its defaults.
const Home = "http://127.0.0.1:8790"

// At is the block's text for a proxy at another base URL. It is an error if the
// block does not name Home: then it would reach something else.
func (b Block) At(base string) (string, error) {
	if !strings.Contains(b.Text, Home) {
		return "", fmt.Errorf("line %d: %s does not name %s", b.Line, b.Name, Home)
	}
	return strings.ReplaceAll(b.Text, Home, base), nil
}

// Exports returns the variables that the block of a shell exports, as NAME=value.
// It knows words without quotes only; other lines are commands for a person.
func Exports(script string) (vars []string) {
	for line := range strings.Lines(script) {
		if assignment, ok := strings.CutPrefix(line, "export "); ok {
			vars = append(vars, strings.Fields(assignment)[0])
		}
	}
	return vars
}
