package purity

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Ban is an import path that a package may not reach, with everything below it, and the reason.
type Ban struct {
	Path  string
	Exact bool // ban the path itself only: net is banned, net/url and net/netip are values
	Why   string
}

// Bans is what no package above the purity line may reach, directly or through others.
var Bans = []Ban{
	{"net", true, "sockets belong to the adapters"},
	{"net/http", false, "sockets belong to the adapters"},
	{"os/exec", false, "a decision starts no process"},
	{"testing", false, "test code does not ship"},
	{"github.com/valyala/fasthttp", false, "transport belongs to proxy and upstream"},
	{"github.com/redis/go-redis", false, "storage belongs to redisstore"},
	{"github.com/sony/gobreaker", false, "breakers read the clock and hold locks"},
	{"github.com/prometheus", false, "pure code leaves notes, telemetry counts them"},
	{"go.opentelemetry.io/otel", false, "pure code leaves notes, telemetry traces them"},
}

// ModuleRoot returns the directory of the go.mod file at or above the working directory, and the module's path.
func ModuleRoot() (dir, module string, err error) {
	dir, err = os.Getwd()
	if err != nil {
		return "", "", err
	}
	for {
		mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil {
			for line := range strings.Lines(string(mod)) {
				if name, ok := strings.CutPrefix(line, "module "); ok {
					return dir, strings.TrimSpace(name), nil
				}
			}
			return "", "", fmt.Errorf("no module line in %s", filepath.Join(dir, "go.mod"))
		}
		up := filepath.Dir(dir)
		if !errors.Is(err, os.ErrNotExist) || up == dir {
			return "", "", fmt.Errorf("find go.mod: %w", err)
		}
		dir = up
	}
}

// Deps lists every package that pkg, an import path or a directory relative to dir, needs to be built, itself excluded.
func Deps(dir, pkg string) ([]string, error) {
	cmd := exec.Command("go", "list", "-deps", "-f", "{{if not .DepOnly}}-{{end}}{{.ImportPath}}", pkg)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w: %s", pkg, err, strings.TrimSpace(stderr.String()))
	}
	deps := strings.Fields(string(out))
	return slices.DeleteFunc(deps, func(d string) bool { return d[0] == '-' }), nil
}

// Banned returns a line for each dependency that one of the bans names.
func Banned(deps []string, bans []Ban) (found []string) {
	for _, d := range deps {
		for _, b := range bans {
			if d == b.Path || !b.Exact && strings.HasPrefix(d, b.Path+"/") {
				found = append(found, fmt.Sprintf("reaches %s: %s", d, b.Why))
			}
		}
	}
	return found
}

// Foreign returns a line for each dependency that belongs to neither the standard library nor the module.
func Foreign(deps []string, module string) (found []string) {
	for _, d := range deps {
		first, _, _ := strings.Cut(d, "/")
		if strings.Contains(first, ".") && d != module && !strings.HasPrefix(d, module+"/") {
			found = append(found, "reaches "+d+": standard library only")
		}
	}
	return found
}
