package main

import (
	"log/slog"
	"strings"
)

// origin is where a setting's value comes from.
type origin struct {
	place string // "file.yaml:12", "UNBROKEN_IDLE", "--idle"; "" is the default
	key   string // within a file: the path of the key
}

func (o origin) String() string {
	if o.place == "" {
		return "default"
	}
	return o.place
}

// problem is one thing that is wrong with the configuration.
type problem struct {
	at   origin
	what string
}

// String is one line, whatever keys and values there are in the file.
func (p problem) String() string {
	said := make([]string, 0, 3)
	for _, s := range []string{p.at.place, p.at.key, p.what} {
		if s != "" {
			said = append(said, cleanLine(s))
		}
	}
	return strings.Join(said, ": ")
}

// attrs are the problem in a line of the log: what is not known of its place is left out.
func (p problem) attrs() []any {
	var all []any
	for _, a := range [...]slog.Attr{slog.String("at", p.at.place), slog.String("key", p.at.key), slog.String("problem", p.what)} {
		if a.Value.String() != "" {
			all = append(all, a)
		}
	}
	return all
}

// problems is an error of one line per problem.
type problems []problem

func (ps problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}
