package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// What deploy/ sets must exist: a renamed variable would be ignored there in silence.
func TestDeploymentsSetWhatExists(t *testing.T) {
	known := map[string]bool{envConfig: true}
	for _, f := range fields(&settings{}, nil) {
		known[f.env()] = true
	}
	variable := regexp.MustCompile(`UNBROKEN_[A-Z_]+`)
	found := 0
	err := filepath.WalkDir("../../deploy", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, name := range variable.FindAllString(string(b), -1) {
			if found++; !known[name] && name != "UNBROKEN_" {
				t.Errorf("%s sets %s, which nothing reads", path, name)
			}
		}
		if strings.HasSuffix(path, ".yaml") {
			for d := yaml.NewDecoder(bytes.NewReader(b)); ; {
				var doc map[string]any
				if err := d.Decode(&doc); errors.Is(err, io.EOF) {
					return nil
				} else if err != nil {
					t.Errorf("%s: %v", path, err)
					return nil
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found == 0 {
		t.Fatal("no deployment sets anything")
	}
}

// The manifests named unbroken:latest, and make image built a version only: what they name is
// what it builds, and is not looked for in a registry that nobody has named.
func TestDeploymentsNameTheImageThatIsBuilt(t *testing.T) {
	made, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`image: (unbroken\S*)\n\s+(\S.*)`)
	for _, path := range []string{"../../deploy/kubernetes/sidecar/pod.yaml", "../../deploy/kubernetes/shared/unbroken.yaml"} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m := named.FindStringSubmatch(string(b))
		switch {
		case m == nil:
			t.Errorf("%s names no image of ours", path)
		case !strings.Contains(string(made), " -t "+m[1]+" "):
			t.Errorf("%s names %s, which make image does not build", path, m[1])
		case !strings.HasPrefix(m[2], "imagePullPolicy: IfNotPresent"):
			t.Errorf("%s: %s would be looked for in a registry", path, m[1])
		}
	}
}

// What they run as a command must be one.
func TestDeploymentsRunCommands(t *testing.T) {
	have := map[string]bool{}
	for _, c := range newRoot(environment{}).Commands() {
		have[c.Name()] = true
	}
	for _, path := range []string{"../../deploy/kubernetes/sidecar/pod.yaml", "../../deploy/kubernetes/shared/unbroken.yaml", "../../deploy/systemd/unbroken.service", "../../Dockerfile"} {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:\[/unbroken, |ExecStart=\S+/unbroken |"/unbroken", ")([a-z]+)`).FindAllStringSubmatch(string(b), -1) {
			if !have[m[1]] {
				t.Errorf("%s runs unbroken %s", path, m[1])
			}
		}
	}
}
