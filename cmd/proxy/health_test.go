package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// Where health asks, whatever is wrong with the file.
func TestWhereHealthAsks(t *testing.T) {
	const standard = "127.0.0.1:8791"
	for _, c := range []struct {
		name, text string
		at         string
		guessed    bool
		bad        string // a problem that leaves nobody to ask
	}{
		{"a sound file", "admin: 127.0.0.1:1\n", "127.0.0.1:1", false, ""},
		{"a sound file that does not say it", "idle: 3s\n", standard, false, ""},
		{"a file that is no YAML", "idle: [\nadmin: 127.0.0.1:1 # here\n", "127.0.0.1:1", false, ""},
		{"one with quotes and the line ends of Windows", "idle: [\r\n\"admin\": '127.0.0.1:1'\r\n", "127.0.0.1:1", false, ""},
		{"one that does not say it", "idle: [\n", standard, true, ""},
		{"one that says it of something else", "idle: [\nupstreams:\n  admin: 127.0.0.1:1\n#admin: 127.0.0.1:2\nadministrator: x\n", standard, true, ""},
		{"one that says it twice", "admin: 127.0.0.1:1\nadmin: 127.0.0.1:2\n", standard, false, ":1: admin: does not say"},
		{"one that says it elsewhere", "idle: [\nadmin:\n  127.0.0.1:1\n", standard, false, ":2: admin: does not say"},
		{"one that says what is no address", "idle: [\nadmin: nowhere\n", standard, false, `:2: admin: "nowhere" is no address`},
		{"a sound file that says what is no address", "admin: nowhere\n", standard, false, `:1: admin: "nowhere" is no address`},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := load(environment{}, origin{place: "--config", key: writtenFile(t, c.text)}, nil)
			guessed := l.address()
			if l.settings.admin != c.at || guessed != c.guessed {
				t.Errorf("asks %s, guessed: %t", l.settings.admin, guessed)
			}
			if l.misaddressed() != (c.bad != "") || !strings.Contains(l.problems.Error(), c.bad) {
				t.Errorf("misaddressed: %t: %v", l.misaddressed(), l.problems)
			}
		})
	}
}

// A failure at the default address is not told as if the file had named it.
func TestAGuessedAddressIsCalledOne(t *testing.T) {
	l := load(environment{}, origin{place: "--config", key: filepath.Join(t.TempDir(), "absent.yaml")}, nil)
	if !l.address() {
		t.Error("not guessed, with no file")
	}
	nobody := errors.New("nobody answers")
	if err := l.doubt(nobody); !errors.Is(err, nobody) || !strings.Contains(err.Error(), "absent.yaml: cannot be read: ") || !strings.Contains(err.Error(), "default address") {
		t.Error(err)
	}
	if err := l.doubt(nil); err != nil {
		t.Error(err)
	}
}
