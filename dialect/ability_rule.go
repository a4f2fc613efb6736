package dialect

import (
	"path"
	"slices"
	"strings"
)

// Endpoint is what a request is sent to: a model of a host, in a dialect.
type Endpoint struct {
	Dialect string // its Name; "" matches only rules for every dialect
	// Host is the upstream's host and, where it has one, base path.
	Host  string
	Model string
}

// AbilityRule gives the ability of the endpoints it matches.
//
// Dialects are names; the same host can serve one model in several, and a trailing
// assistant turn that goes on in one is finished in another. Hosts are patterns over
// the upstream's host without port, followed by its base path without trailing slash
// where it has one ("api.deepseek.com/beta"); Models are patterns over the model name
// as the request spells it. An empty list matches everything. Patterns are those of
// path.Match, in lower case, except that * also matches slashes
// ("anthropic/claude-3-opus").
type AbilityRule struct {
	Dialects []string
	Hosts    []string
	Models   []string
	Ability  Ability
}

// AbilityOf is what the house knows of an endpoint without being told: WIRE 2.1. One
// it does not know is only ever asked to go on, because a flag or a trailing
// assistant turn that a server takes the wrong way costs an attempt, or, silently,
// the caller's answer.
func AbilityOf(e Endpoint) Ability {
	a, _ := Match(abilities, e)
	return a
}

// Match returns the ability of the first rule that fits. Configuration overrides
// the table by matching its own rules first.
func Match(rules []AbilityRule, e Endpoint) (Ability, bool) {
	host, model := hostKey(e.Host), modelKey(e.Model)
	for i := range rules {
		r := &rules[i]
		if (len(r.Dialects) == 0 || slices.Contains(r.Dialects, e.Dialect)) && matchAny(r.Hosts, host) && matchAny(r.Models, model) {
			return r.Ability, true
		}
	}
	return Ability{}, false
}

func hostKey(host string) string {
	host = strings.ToLower(host)
	if at := strings.Index(host, "://"); at >= 0 {
		host = host[at+3:]
	}
	name, base, _ := strings.Cut(host, "/")
	if at := strings.LastIndexByte(name, ':'); at >= 0 && !strings.HasSuffix(name, "]") {
		name = name[:at]
	}
	if base = strings.Trim(base, "/"); base != "" {
		name += "/" + base
	}
	return slashless(name)
}

func modelKey(model string) string { return slashless(strings.ToLower(model)) }

// slashless makes path.Match's * match across slashes.
func slashless(s string) string { return strings.ReplaceAll(s, "/", "\x00") }

func matchAny(patterns []string, key string) bool {
	for _, p := range patterns {
		if ok, err := path.Match(slashless(p), key); ok && err == nil {
			return true
		}
	}
	return len(patterns) == 0
}
