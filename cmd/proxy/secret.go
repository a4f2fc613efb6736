package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/unbroken-llm/unbroken/sealed"
)

// secret is a text that is never shown: env:NAME, file:PATH, or the secret
// itself, which is better kept out of command lines.
type secret struct {
	p      *string
	lookup func(string) (string, bool)
}

func (v secret) set(text string) (err error) {
	*v.p, err = reveal(text, v.lookup)
	return err
}

func (v secret) String() string { return redact(*v.p) }

// reveal returns a secret, which is one line.
func reveal(text string, lookup func(string) (string, bool)) (string, error) {
	got, err := disclose(text, lookup)
	if err == nil && strings.ContainsAny(got, "\r\n\x00") {
		return "", errors.New("the secret holds line breaks: it must be one line")
	}
	return got, err
}

// maxSecret bounds a secret's file: what is larger is something else.
const maxSecret = 1 << 20

// disclose returns what a secret's text stands for.
func disclose(text string, lookup func(string) (string, bool)) (string, error) {
	got := text
	if name, ok := strings.CutPrefix(text, "env:"); ok {
		if got, ok = lookup(name); !ok {
			return "", fmt.Errorf("environment variable %s is not set", name)
		}
	} else if name, ok := strings.CutPrefix(text, "file:"); ok {
		b, err := readUpTo(name, maxSecret+1) // devices have no end
		if err != nil {
			return "", fmt.Errorf("read the secret: %w", err)
		}
		if len(b) > maxSecret {
			return "", fmt.Errorf("%s is too large for a secret", name)
		}
		got = strings.TrimRight(string(b), "\r\n")
	}
	if got == "" && text != "" {
		return "", fmt.Errorf("%s is empty", text)
	}
	return got, nil
}

// sealKeys is a secret of one or more encryption keys.
type sealKeys struct {
	p      *sealed.Keys
	lookup func(string) (string, bool)
}

func (v sealKeys) set(text string) error {
	got, err := disclose(text, v.lookup)
	switch {
	case err != nil:
	case got == "":
		*v.p = sealed.Keys{}
	default:
		*v.p, err = sealed.ParseKeys(got) // its errors show no key
	}
	return err
}

func (v sealKeys) String() string {
	if v.p.Len() == 0 {
		return ""
	}
	return redact("keys")
}

func redact(s string) string {
	if s == "" {
		return ""
	}
	return "(set, not shown)"
}

func (secret) kind() string   { return "SECRET" }
func (sealKeys) kind() string { return "SECRET" }
