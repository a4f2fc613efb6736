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
