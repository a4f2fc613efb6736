package proxy

import (
	"net/url"
	"slices"
	"strings"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/anthropic"
	"github.com/unbroken-llm/unbroken/dialect/bedrock"
	"github.com/unbroken-llm/unbroken/dialect/completions"
	"github.com/unbroken-llm/unbroken/dialect/gemini"
	"github.com/unbroken-llm/unbroken/dialect/interactions"
	"github.com/unbroken-llm/unbroken/dialect/openaichat"
	"github.com/unbroken-llm/unbroken/dialect/openairesponses"
	"github.com/unbroken-llm/unbroken/upstream"
)

// protectedPaths is the table of dialects: what a POST to it speaks, and which
// upstream it means at the root. Under /u/<name>/, and behind base paths, the
// suffix counts: "/openai/deployments/x/chat/completions" speaks chat.
var protectedPaths = []struct {
	path     string // at the root, exact
	suffix   string // of the path that goes upstream
	dialect  dialect.Dialect
	upstream string
}{
	{"/v1/chat/completions", "/chat/completions", openaichat.Dialect{}, "openai"},
	// Behind chat, whose paths end alike.
	{"/v1/completions", "/completions", completions.Dialect{}, "openai"},
	{"/v1/responses", "/responses", openairesponses.Dialect{}, "openai"},
	// Not "/messages" alone: OpenAI's threads have messages too.
	{"/v1/messages", "/v1/messages", anthropic.Dialect{}, "anthropic"},
	{"/v1beta/interactions", "/interactions", interactions.Dialect{}, "gemini"},
}

// generative is the dialect of Gemini, whose paths hold the model's name:
// …/models/{model}:streamGenerateContent?alt=sse and :generateContent.
var generative = gemini.Dialect{}

// generates is what a path of that kind speaks, nil for any other. Without alt=sse a
// stream is a JSON array.
func generates(path string) dialect.Dialect {
	switch c := gemini.ReadPath(path); {
	case !c.Generates() || c.Foreign || c.Model == "":
		return nil
	case c.Array:
		return gemini.Array{}
	}
	return generative
}

// inPath is the dialect of a path that holds the model's name, nil for all others.
func inPath(path string) dialect.Dialect {
	if d := generates(path); d != nil {
		return d
	}
	switch c := bedrock.ReadPath(path); {
	case c.Model == "":
	case c.Converses():
		return bedrock.Converse{}
	case c.Invokes():
		return bedrock.Invoke{}
	}
	return nil
}

// withModel is a path of a dialect that names the model there, with another model in
// it; ok is false for all others.
func withModel(d dialect.Dialect, path, model string) (named string, ok bool) {
	switch d.(type) {
	case gemini.Dialect, gemini.Array:
		return gemini.AtModel(path, model), true
	case bedrock.Converse, bedrock.Invoke:
		return bedrock.WithModel(path, model), true
	}
	return path, false
}

// Dialects are the names of the dialects that requests can be protected in.
func Dialects() []string {
	names := []string{generative.Name(), bedrock.Converse{}.Name(), bedrock.Invoke{}.Name()}
	for _, p := range protectedPaths {
		names = append(names, p.dialect.Name())
	}
	slices.Sort(names)
	return names
}

func dialectNamed(name string) dialect.Dialect {
	for _, d := range []dialect.Dialect{generative, bedrock.Converse{}, bedrock.Invoke{}} {
		if d.Name() == name {
			return d
		}
	}
	for _, p := range protectedPaths {
		if p.dialect.Name() == name {
			return p.dialect
		}
	}
	return nil
}

// origin is an upstream, ready for use. It is immutable.
type origin struct {
	Upstream
	target upstream.Target
	base   string // escaped base path
	host   string // as AbilityRule.Hosts know it: host and base path
	family dialect.Dialect
	guard  *guard
	fallen fallen
}

func newOrigin(u Upstream, base *url.URL) *origin {
	o := &origin{Upstream: u, base: base.EscapedPath(), host: base.Host + base.EscapedPath(), guard: newGuard()}
	o.target = upstream.Target{Name: u.Name, URL: base, HostOverride: u.Host, SNI: u.SNI, HTTP1: u.HTTP1, TLS: u.TLS}
	switch {
	case u.Dialect != "":
		o.family = dialectNamed(u.Dialect)
	case u.Name == "gemini" || strings.Contains(base.Host, "generativelanguage"):
		o.family = generative
	case u.Name == "anthropic" || strings.Contains(base.Host, "anthropic"):
		o.family = anthropic.Dialect{}
	case u.Name == "bedrock" || strings.Contains(base.Host, "bedrock-runtime"):
		o.family = bedrock.Converse{}
	default:
		o.family = openaichat.Dialect{}
	}
	return o
}

// route is where a request goes.
type route struct {
	to   *origin
	path string // path and query as they go upstream
	tail string // the same without what its upstream's base path does to it
	// speaks is the dialect of a request that may be protected; nil: the
	// request is relayed untouched.
	speaks dialect.Dialect
}

// resolve finds the route of a request by its raw path and query.
//
//	POST /v1/chat/completions        chat, to openai
//	POST /v1/completions             legacy completions, to openai
//	POST /v1/responses               Responses, to openai
//	POST /v1/messages                Messages, to anthropic
//	POST /v1beta/models/…            Gemini, to gemini
//	POST /v1/models/…:generate…      the same, as @google/genai asks from 3 on
//	     /v1beta/…                   untouched, to gemini
//	     with an x-goog-api-key      untouched, to gemini (its /v1/models, /v1/files …)
//	POST /model/{id}/converse…       Converse, to bedrock, if there is such an upstream
//	POST /model/{id}/invoke…         Invoke, to bedrock
//	     /model/…                    untouched, to bedrock
//	     /u/<name>/…                 that upstream; protected by the suffix of its path
//	     /v1/messages/…              untouched, to anthropic
//	     with an anthropic-version   untouched, to anthropic (its /v1/models, /v1/files …)
//	     anything else               untouched, to openai
//
// ok is false for an upstream that does not exist.
func (t *terms) resolve(method, target string, h upstream.Header) (route, bool) {
	path, _, _ := strings.Cut(target, "?")
	if rest, ok := strings.CutPrefix(target, "/u/"); ok {
		end := strings.IndexAny(rest, "/?")
		if end < 0 {
			end = len(rest)
		}
		o := t.origins[rest[:end]]
		if o == nil {
			return route{}, false
		}
		rest = rest[end:]
		if rest == "" || rest[0] != '/' {
			rest = "/" + rest
		}
		r := route{to: o, path: Join(o.base, rest), tail: rest}
		r.speaks = speaking(method, r)
		return r, true
	}
	for _, p := range protectedPaths {
		if path == p.path {
			o := t.origins[p.upstream]
			r := route{to: o, path: Join(o.base, target), tail: target}
			if method == "POST" && (o.Dialect == "" || o.Dialect == p.dialect.Name()) {
				r.speaks = p.dialect
			}
			return r, true
		}
	}
	for _, p := range [...]struct{ prefix, upstream string }{{"/v1beta/", "gemini"}, {"/model/", "bedrock"}} {
		if o := t.origins[p.upstream]; o != nil && strings.HasPrefix(path, p.prefix) {
			r := route{to: o, path: Join(o.base, target), tail: target}
			r.speaks = speaking(method, r)
			return r, true
		}
	}
	if o := t.origins["gemini"]; o != nil && (gemini.ReadPath(target).Generates() || h.Has("x-goog-api-key")) {
		r := route{to: o, path: Join(o.base, target), tail: target}
		r.speaks = speaking(method, r)
		return r, true
	}
	o := t.origins["openai"]
	if strings.HasPrefix(path, "/v1/messages/") || h.Has("anthropic-version") {
		o = t.origins["anthropic"]
	}
	return route{to: o, path: Join(o.base, target), tail: target}, true
}

func speaking(method string, r route) dialect.Dialect {
	path, _, _ := strings.Cut(r.path, "?")
	if d := inPath(r.path); method == "POST" && d != nil && (r.to.Dialect == "" || r.to.Dialect == d.Name()) {
		return d
	}
	for _, p := range protectedPaths {
		if method == "POST" && strings.HasSuffix(path, p.suffix) && (r.to.Dialect == "" || r.to.Dialect == p.dialect.Name()) {
			return p.dialect
		}
	}
	return nil
}
