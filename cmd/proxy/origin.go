package main

import (
	"fmt"
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

func (p problem) String() string {
	switch {
	case p.at.place == "":
		return strings.TrimPrefix(p.at.key+": "+p.what, ": ")
	case p.at.key == "":
		return p.at.place + ": " + p.what
	}
	return fmt.Sprintf("%s: %s: %s", p.at.place, p.at.key, p.what)
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
