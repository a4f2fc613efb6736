package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// maxFile bounds a configuration file: what is larger is something else.
const maxFile = 4 << 20

// entry is one key of a file.
type entry struct {
	key  string
	line int
	text string  // of a scalar
	kids []entry // of a mapping or a list
	kind string  // "scalar", "mapping", "list"
}

// readUpTo reads a file, or as much of it.
func readUpTo(name string, most int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// readFile reads a configuration file, once, since it may be a pipe.
func readFile(name string) ([]byte, problems) {
	at := origin{place: name}
	b, err := readUpTo(name, maxFile+1) // devices have no end
	if err != nil {
		return nil, problems{{at, "cannot be read: " + plain(err)}}
	}
	if len(b) > maxFile {
		return nil, problems{{at, "is too large for a configuration"}}
	}
	return bytes.TrimPrefix(b, []byte("\uFEFF")), nil // editors on Windows begin files with it
}

// keysOf reads the keys of YAML, the text of a file; there are none if there is a problem.
func keysOf(name string, b []byte) ([]entry, problems) {
	at := origin{place: name}
	file, err := parser.ParseBytes(b, 0)
	if err != nil {
		return nil, problems{syntax(name, err)}
	}
	var body ast.Node
	for _, doc := range file.Docs {
		if doc.Body == nil || doc.Body.Type() == ast.CommentType {
			continue
		}
		if body != nil {
			return nil, problems{{at, "holds more than one YAML document: keep one"}}
		}
		body = doc.Body
	}
	if body == nil || body.Type() == ast.NullType {
		return nil, nil
	}
	root := entry{line: line(body)}
	if bad := root.read(body); bad != nil {
		return nil, problems{{origin{place: fmt.Sprintf("%s:%d", name, bad.line), key: bad.key}, errWriteOut}}
	}
	if root.kind != "mapping" {
		return nil, problems{{origin{place: fmt.Sprintf("%s:%d", name, root.line)}, "must be a mapping of keys to values, for instance listen: 127.0.0.1:8790"}}
	}
	return root.kids, nil
}

// syntax is the problem of a file that is no YAML.
func syntax(name string, err error) problem {
	var s *yaml.SyntaxError
	if errors.As(err, &s) && s.Token != nil && s.Token.Position != nil {
		return problem{origin{place: fmt.Sprintf("%s:%d", name, s.Token.Position.Line)}, s.Message}
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return problem{origin{place: name}, first}
}

// plain is the reason of a file error without its operation and path.
func plain(err error) string {
	var pe *os.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}

func line(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 0
}

const errWriteOut = "YAML anchors, aliases and tags are not supported here: write the value out"

// read fills e from a node. It returns the entry that cannot be read, if any.
func (e *entry) read(n ast.Node) (bad *entry) {
	switch n := n.(type) {
	case *ast.MappingNode:
		e.kind = "mapping"
		for _, pair := range n.Values {
			if bad = e.add(pair); bad != nil {
				return bad
			}
		}
	case *ast.MappingValueNode:
		e.kind = "mapping"
		return e.add(n)
	case *ast.SequenceNode:
		e.kind = "list"
		for i, v := range n.Values {
			kid := entry{key: fmt.Sprintf("%s[%d]", e.key, i), line: line(v)}
			if bad = kid.read(v); bad != nil {
				return bad
			}
			e.kids = append(e.kids, kid)
		}
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode: // scalars, to their package
		return e
	case *ast.NullNode:
		e.kind = "scalar"
	case *ast.StringNode:
		e.kind, e.text = "scalar", n.Value
	case *ast.LiteralNode:
		e.kind, e.text = "scalar", strings.TrimRight(n.Value.Value, "\n")
	case ast.ScalarNode:
		e.kind, e.text = "scalar", n.GetToken().Value // as it was written: 0x10 and 1e3 are the value's business
	default:
		return e
	}
	return nil
}

func (e *entry) add(pair *ast.MappingValueNode) (bad *entry) {
	kid := entry{key: pair.Key.GetToken().Value, line: line(pair.Key)}
	if bad = kid.read(pair.Value); bad != nil {
		return bad
	}
	e.kids = append(e.kids, kid)
	return nil
}
