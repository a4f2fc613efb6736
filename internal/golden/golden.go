package golden

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what the tests got into their golden files")

// Rewriting reports whether golden files are being rewritten.
func Rewriting() bool { return *rewrite }

// Read returns a file, relative to the test's package directory. A missing one
// fails the test.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatalf("read golden file: %v", err)
	}
	return b
}

// Compare fails the test with a diff unless the file at path holds exactly got.
// With -rewrite it writes got there instead, and logs that it did.
func Compare(t testing.TB, path string, got []byte) {
	t.Helper()
	compare(t, path, got, *rewrite)
}

func compare(t testing.TB, path string, got []byte, rewrite bool) {
	t.Helper()
	file := filepath.FromSlash(path)
	want, err := os.ReadFile(file)
	if err == nil && bytes.Equal(want, got) {
		return
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("read golden file: %v", err)
	}
	if rewrite {
		if err := write(file, got); err != nil {
			t.Fatalf("write golden file: %v", err)
		}
		t.Logf("rewrote %s", path)
		return
	}
	if err != nil {
		t.Errorf("%s does not exist (-rewrite writes it); got:\n%s", path, Diff(nil, got))
		return
	}
	t.Errorf("%s differs (- file, + got; -rewrite accepts it):\n%s", path, Diff(want, got))
}

func write(file string, b []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, b, 0o644)
}
