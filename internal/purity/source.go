package purity

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// forbidden names the packages that a pure file may not import itself, though the standard library does below it.
var forbidden = map[string]string{
	"net":         "sockets belong to the adapters",
	"os":          "files, environment and process belong to the adapters",
	"crypto/rand": "randomness is an argument",
	"unsafe":      "the laws below hold for safe code only",
}

// clock names the functions of package time that read or wait on the clock.
var clock = map[string]bool{
	"Now": true, "Since": true, "Until": true, "Sleep": true, "After": true, "AfterFunc": true,
	"Tick": true, "NewTimer": true, "NewTicker": true,
}

// seeded names what math/rand and math/rand/v2 offer for a generator of one's own; everything else is the global one.
var seeded = map[string]bool{
	"New": true, "NewSource": true, "NewPCG": true, "NewChaCha8": true, "NewZipf": true,
	"Rand": true, "Source": true, "Source64": true, "PCG": true, "ChaCha8": true, "Zipf": true,
}

// memoryFile is the in-memory twin of a store interface, the one file of a pure package that may hold a mutex.
const memoryFile = "memory.go"

// Dir checks the non-test Go files of one directory with Source.
func Dir(dir string) (found []string, err error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		lines, err := Source(filepath.Base(path), src)
		if err != nil {
			return nil, err
		}
		found = append(found, lines...)
	}
	return found, nil
}

// Source returns a line for each breach of purity in one file: clock, goroutine, lock, global randomness, init.
func Source(name string, src []byte) ([]string, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []string
	report := func(at token.Pos, what string) {
		p := fset.Position(at)
		found = append(found, fmt.Sprintf("%s:%d: %s", p.Filename, p.Line, what))
	}
	imports := map[string]string{} // name in this file -> path, for packages of which only a part is pure
	for _, imp := range file.Imports {
		path, err := strconv.Unquote(imp.Path.Value)
		if err != nil {
			return nil, err
		}
		if why := forbidden[path]; why != "" {
			report(imp.Pos(), "imports "+path+": "+why)
		}
		if (path == "sync" || strings.HasPrefix(path, "sync/")) && name != memoryFile {
			report(imp.Pos(), "imports "+path+": pure code has one owner and no locks")
		}
		local := map[string]string{"time": "time", "math/rand": "rand", "math/rand/v2": "rand"}[path]
		if local == "" {
			continue
		}
		if imp.Name != nil {
			local = imp.Name.Name
		}
		if local == "." {
			report(imp.Pos(), "dot import of "+path+" hides what it uses")
		}
		imports[local] = path
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			report(n.Pos(), "go statement: pure code starts no goroutine")
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				report(n.Pos(), "func init: nothing happens before it is asked for")
			}
		case *ast.SelectorExpr:
			pkg, ok := n.X.(*ast.Ident)
			if !ok {
				break
			}
			switch path := imports[pkg.Name]; {
			case path == "time" && clock[n.Sel.Name]:
				report(n.Pos(), "time."+n.Sel.Name+": time is an argument")
			case strings.HasPrefix(path, "math/rand") && !seeded[n.Sel.Name]:
				report(n.Pos(), path+"."+n.Sel.Name+": global randomness; jitter is passed in")
			}
		}
		return true
	})
	return found, nil
}

// MaxLines is the length in lines at which a file fails review (HOUSE §8).
const MaxLines = 700

// LongFiles returns a line for each non-test Go file below root that is longer than MaxLines. Files of fixtures, vendored
// code and hidden directories are not ours to judge.
func LongFiles(root string) (found []string, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() {
			if path != root && (name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if n := strings.Count(string(src), "\n"); n > MaxLines {
			rel, _ := filepath.Rel(root, path)
			found = append(found, fmt.Sprintf("%s has %d lines, more than %d", rel, n, MaxLines))
		}
		return nil
	})
	return found, err
}
