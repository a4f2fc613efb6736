package main

import (
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// value is one setting's variable, as text. An error of set says what to write
// instead; kind is what usage texts call it.
type value interface {
	set(text string) error
	String() string
	kind() string
}

// off is what switches a clock off; in the packages that is a negative duration.
const off = "off"

// duration is a time between min and max.
type duration struct {
	p        *time.Duration
	min, max time.Duration
	off      bool // may be switched off
}

func (v duration) set(text string) error {
	if v.off && text == off {
		*v.p = -1
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		if _, bare := strconv.ParseFloat(text, 64); bare == nil {
			return fmt.Errorf("%s has no unit: write for instance %ss", text, text)
		}
		return fmt.Errorf("%q is no duration: write for instance %s", text, spell(v.min))
	}
	if d < v.min || d > v.max {
		orOff := ""
		if v.off {
			orOff = ", or off"
		}
		return fmt.Errorf("%s is out of range: use %s to %s%s", text, spell(v.min), spell(v.max), orOff)
	}
	*v.p = d
	return nil
}

func (v duration) String() string {
	if *v.p < 0 {
		return off
	}
	return spell(*v.p)
}

// spell writes a duration as a person would: 90s, 250ms, 24h.
func spell(d time.Duration) string {
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Second && d%time.Second == 0:
		return fmt.Sprintf("%ds", d/time.Second)
	}
	return d.String()
}

// size is a number of bytes.
type size[N int | int64] struct {
	p        *N
	min, max int64
}

var units = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

func (v size[N]) set(text string) error {
	digits, by := text, int64(1)
	for _, u := range units {
		if n, ok := strings.CutSuffix(text, u.name); ok {
			digits, by = strings.TrimSpace(n), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return fmt.Errorf("%q is no size: write for instance 64MiB (units B, KiB, MiB, GiB)", text)
	}
	if n < 0 || n > v.max/by || n*by < v.min {
		return fmt.Errorf("%s is out of range: use %s to %s", text, spellSize(v.min), spellSize(v.max))
	}
	*v.p = N(n * by)
	return nil
}

func (v size[N]) String() string { return spellSize(int64(*v.p)) }

func spellSize(n int64) string {
	for _, u := range units {
		if n >= u.bytes && n%u.bytes == 0 {
			return fmt.Sprintf("%d%s", n/u.bytes, u.name)
		}
	}
	return "0B"
}

// count is a number of things.
type count struct {
	p        *int
	min, max int
	none     bool // 0 is meant; the packages spell it -1, since their 0 is the default
}

func (v count) set(text string) error {
	n, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("%q is no whole number", text)
	}
	if n < v.min || n > v.max {
		return fmt.Errorf("%d is out of range: use %d to %d", n, v.min, v.max)
	}
	if v.none && n == 0 {
		n = -1
	}
	*v.p = n
	return nil
}

func (v count) String() string { return strconv.Itoa(max(0, *v.p)) }

// choice is one of a few words.
type choice struct {
	p     *string
	among []string
}

func (v choice) set(text string) error {
	if !slices.Contains(v.among, text) {
		return fmt.Errorf("%q is not known: use %s", text, strings.Join(v.among, ", "))
	}
	*v.p = text
	return nil
}

func (v choice) String() string { return *v.p }

// level is a log level.
type level struct{ p *slog.Level }

var levels = []string{"debug", "info", "warn", "error"}

func (v level) set(text string) error {
	if !slices.Contains(levels, text) {
		return fmt.Errorf("%q is not known: use %s", text, strings.Join(levels, ", "))
	}
	return v.p.UnmarshalText([]byte(text))
}

func (v level) String() string { return strings.ToLower(v.p.String()) }

// address is host:port to listen on.
type address struct {
	p   *string
	off bool
}

func (v address) set(text string) error {
	if v.off && text == off {
		*v.p = off
		return nil
	}
	_, port, err := net.SplitHostPort(text)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil {
		return fmt.Errorf("%q is no address: write host:port, for instance 127.0.0.1:8790", text)
	}
	*v.p = text
	return nil
}

func (v address) String() string { return *v.p }

// path names a file. Whoever reads it reports what is wrong with it.
type path struct{ p *string }

func (v path) set(text string) error { *v.p = text; return nil }
func (v path) String() string        { return *v.p }

// freeText is checked where it is used.
type freeText struct{ p *string }

func (v freeText) set(text string) error { *v.p = text; return nil }
func (v freeText) String() string        { return *v.p }

// boolean is true or false.
type boolean struct{ p *bool }

func (v boolean) set(text string) error {
	if text != "true" && text != "false" {
		return fmt.Errorf("%q is neither true nor false", text)
	}
	*v.p = text == "true"
	return nil
}

func (v boolean) String() string { return fmt.Sprint(*v.p) }

// headerName is the name of a header field.
type headerName struct{ p *string }

func (v headerName) set(text string) error {
	if text != "" && !httpguts.ValidHeaderFieldName(text) {
		return fmt.Errorf("%q is no name of a header: write for instance X-Tenant", text)
	}
	*v.p = text
	return nil
}

func (v headerName) String() string { return *v.p }

func (duration) kind() string   { return "DURATION" }
func (size[N]) kind() string    { return "SIZE" }
func (count) kind() string      { return "N" }
func (choice) kind() string     { return "WORD" }
func (level) kind() string      { return "LEVEL" }
func (address) kind() string    { return "ADDRESS" }
func (path) kind() string       { return "FILE" }
func (freeText) kind() string   { return "TEXT" }
func (headerName) kind() string { return "HEADER" }
func (boolean) kind() string    { return "BOOL" }

func (storeValue) kind() string { return "STORE" }
func (*upstreams) kind() string { return "NAME=URL" }
