package faultinject

import (
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"time"
)

// Config is everything a Server can be told. The zero value is a well-behaved,
// strict provider on a free loopback port.
type Config struct {
	Listen string // address, default 127.0.0.1:0
	TLS    bool   // serve TLS with a certificate made at start (Server.Roots)

	Script   Script
	Scenario string // default "auto"; a request may name another
	Seam     Seam   // of continuations, where the script names none
	Host     Host   // which Chat server to be
	Variant  Variant
	Pace     time.Duration // between events
	Seed     uint64

	LongTokens   int        // length of the "long" scenario, default 600
	Calls        []ToolCall // calls that auto and agent prefer
	IgnoreAnchor bool       // go on exactly although an anchor was asked for

	// Target makes the server a reverse proxy that applies its faults to a real
	// provider's stream. Scenarios, seams and strictness are then the target's.
	Target *url.URL

	Logger *slog.Logger // one line per exchange; default discards
}

func (c Config) withDefaults() Config {
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	if c.Scenario == "" {
		c.Scenario = "auto"
	}
	if c.Host == "" {
		c.Host = OpenAI
	}
	if c.LongTokens <= 0 {
		c.LongTokens = 600
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return c
}

// Validate reports the first setting that cannot work.
func (c Config) Validate() error {
	c = c.withDefaults()
	if _, ok := scenarios[c.Scenario]; !ok {
		_, err := Scenario(c.Scenario, Prompt{}, c)
		return err
	}
	if _, ok := seams[c.Seam.Name]; !ok {
		_, err := parseSeam([]string{c.Seam.Name})
		return err
	}
	if _, err := ParseHost(string(c.Host)); err != nil {
		return err
	}
	if t := c.Target; t != nil && (t.Scheme != "http" && t.Scheme != "https" || t.Host == "") {
		return fmt.Errorf("target %q: use an absolute http or https URL", t)
	}
	return nil
}
