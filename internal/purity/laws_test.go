package purity

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pure lists the packages above the purity line. A name that ends in /... stands for the subpackages too.
var pure = []string{
	"sse", "eventstream", "turn", "internal/jsonwalk", "internal/jsonfold", "dialect/...", "interrupt", "planner", "splice", "relay", "checkpoint", "ledger",
}

// impure names the directories below a pure package that exist for tests and may use them.
var impure = map[string]bool{"dialecttest": true, "relaytest": true, "storetest": true, "testdata": true}

// stdOnly lists the packages that are the ground everything stands on.
var stdOnly = map[string]bool{"sse": true, "turn": true, "internal/jsonwalk": true}

// directions are the import laws that are not about purity.
var directions = []struct{ pkg, not, why string }{
	{"redisstore", "relay", "a store knows records, not the machine that writes them"},
	{"planner", "dialect", "a plan follows from facts, not from a wire format"},
	{"proxy", "redisstore", "the proxy meets stores as interfaces; cmd/proxy wires them"},
}

func root(t *testing.T) (dir, module string) {
	t.Helper()
	dir, module, err := ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return dir, module
}

func TestPurePackages(t *testing.T) {
	dir, module := root(t)
	for _, entry := range pure {
		name, tree := strings.CutSuffix(entry, "/...")
		for _, pkg := range packages(t, dir, name, tree) {
			t.Run(pkg, func(t *testing.T) {
				deps, err := Deps(dir, "./"+pkg)
				if err != nil {
					t.Fatal(err)
				}
				found, err := Dir(filepath.Join(dir, pkg))
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, Banned(deps, Bans)...)
				if stdOnly[pkg] {
					found = append(found, Foreign(deps, module)...)
				}
				for _, f := range found {
					t.Error(f)
				}
			})
		}
	}
}

// packages lists the package directories of a law's name; none, and a log line, when the package is not built yet.
func packages(t *testing.T, root, name string, tree bool) (pkgs []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(root, name), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if impure[d.Name()] || !tree && rel != filepath.FromSlash(name) {
			return filepath.SkipDir
		}
		if hasGo(path) {
			pkgs = append(pkgs, filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if len(pkgs) == 0 {
		t.Logf("%s does not exist yet", name)
	}
	return pkgs
}

func hasGo(dir string) bool {
	paths, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	for _, p := range paths {
		if !strings.HasSuffix(p, "_test.go") {
			return true
		}
	}
	return false
}

func TestImportDirections(t *testing.T) {
	dir, module := root(t)
	for _, law := range directions {
		t.Run(law.pkg+" without "+law.not, func(t *testing.T) {
			if !hasGo(filepath.Join(dir, law.pkg)) {
				t.Skipf("%s does not exist yet", law.pkg)
			}
			deps, err := Deps(dir, "./"+law.pkg)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range Banned(deps, []Ban{{Path: module + "/" + law.not, Why: law.why}}) {
				t.Error(f)
			}
		})
	}
}

func TestNoLongFiles(t *testing.T) {
	dir, _ := root(t)
	found, err := LongFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f)
	}
}

// The checks are checked: each breach is found, and nothing else is.
func TestSourceFindsBreaches(t *testing.T) {
	for _, c := range []struct{ name, file, src, want string }{
		{"clock", "a.go", `import "time"; var t = time.Now()`, "time.Now"},
		{"clock as a value", "a.go", `import "time"; var now = time.Now`, "time.Now"},
		{"clock under another name", "a.go", `import x "time"; func f() { x.Sleep(1) }`, "time.Sleep"},
		{"timer", "a.go", `import "time"; var t = time.AfterFunc(1, nil)`, "time.AfterFunc"},
		{"dot import", "a.go", `import . "time"; var t = Now()`, "dot import"},
		{"durations are fine", "a.go", `import "time"; var d time.Duration = time.Second; func f(t time.Time) bool { return t.After(t) }`, ""},
		{"goroutine", "a.go", `func f() { func() { go f() }() }`, "go statement"},
		{"lock", "a.go", `import "sync"; var mu sync.Mutex`, "imports sync"},
		{"atomic", "a.go", `import "sync/atomic"; var n atomic.Int64`, "imports sync/atomic"},
		{"lock in the in-memory twin", "memory.go", `import "sync"; type m struct { mu sync.Mutex }`, ""},
		{"global randomness", "a.go", `import "math/rand/v2"; var n = rand.IntN(3)`, "global randomness"},
		{"old global randomness", "a.go", `import "math/rand"; var n = rand.Intn(3)`, "global randomness"},
		{"own generator", "a.go", `import "math/rand/v2"; func f(r *rand.Rand) int { return rand.New(rand.NewPCG(1, 2)).IntN(3) }`, ""},
		{"system randomness", "a.go", `import _ "crypto/rand"`, "imports crypto/rand"},
		{"files", "a.go", `import "os"; var e = os.Args`, "imports os"},
		{"init", "a.go", `func init() {}`, "func init"},
		{"method named init", "a.go", `type t int; func (t) init() {}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := Source(c.file, []byte("package p; "+c.src))
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" && found != nil || c.want != "" && (len(found) != 1 || !strings.Contains(found[0], c.want)) {
				t.Errorf("found %q, want %q", found, c.want)
			}
		})
	}
}

func TestDepsFindsBannedPackages(t *testing.T) {
	dir, module := root(t)
	deps, err := Deps(dir, "./internal/purity")
	if err != nil {
		t.Fatal(err)
	}
	if found := Banned(deps, Bans); len(found) != 1 || !strings.Contains(found[0], "os/exec") {
		t.Errorf("purity itself runs the go command; found %q", found)
	}
	for dep, banned := range map[string]bool{
		"net": true, "net/url": false, "net/netip": false, "net/http": true, "net/http/httptest": true, "testing": true,
		"testing/fstest": true, "github.com/redis/go-redis/v9": true, "github.com/redis/go-redis-x": false, "os": false,
	} {
		if got := Banned([]string{dep}, Bans) != nil; got != banned {
			t.Errorf("%s: banned %v, want %v", dep, got, banned)
		}
	}
	if found := Foreign([]string{"fmt", module + "/turn", "github.com/tidwall/gjson"}, module); len(found) != 1 {
		t.Errorf("foreign packages %q, want one", found)
	}
}

func TestLongFilesFindsThem(t *testing.T) {
	dir := t.TempDir()
	for name, lines := range map[string]int{"a.go": MaxLines, "b.go": MaxLines + 1, "b_test.go": 9999, "testdata/c.go": 9999, "x/d.go": 9999} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Repeat("//\n", lines)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found, err := LongFiles(dir)
	if err != nil || len(found) != 2 {
		t.Errorf("found %q, %v, want b.go and x/d.go", found, err)
	}
}
