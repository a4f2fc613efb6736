package proxy

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/unbroken-llm/unbroken/dialect/interactions"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/upstream"
)

// Route says where requests for some models go, and where else.
type Route struct {
	// Model is a pattern of the model name; * stands for any letters.
	Model string
	// Upstream is the one that a request must name to be routed, by its path
	// at the root or under /u/<name>/. Empty: the one that the first target's
	// dialect has at the root.
	Upstream string
	// Targets in order. A turn that cannot go on at one goes on at the next.
	Targets []RouteTarget
	// FirstToken, Idle and Progress replace those of relay.Config.Watch; 0
	// keeps them, a negative one switches that clock off.
	FirstToken, Idle, Progress time.Duration
	// Floor is how many bytes of text a second must flow, over FloorSpan; 0
	// keeps the common one.
	Floor     int
	FloorSpan time.Duration
	// Background has the provider hold the generations of OpenAI Responses whose
	// requests permit it, so that a cut loses nothing (docs/ROUTES.md). The caller
	// sees the stream it asked for. The provider keeps the answer for some minutes,
	// also where its callers are promised that it keeps nothing.
	Background bool
	// Upgrade has calls that do not stream served from a stream, so that a break keeps
	// what was generated (docs/ROUTES.md). The caller gets the ordinary answer.
	Upgrade bool
}

// RouteTarget is one target of a route.
type RouteTarget struct {
	Upstream string
	Model    string // sent in place of the caller's; "" keeps it
	// For restricts the target: "context_overflow" keeps it for prompts that
	// are too long for the others. Empty: any failure.
	For string
}

// ForOverflow is the restriction of a [RouteTarget] to prompts that are too long.
const ForOverflow = "context_overflow"

// matches reports whether a pattern, in which * stands for any letters, matches s.
// A pattern that matches another pattern matches all that that one does.
func matches(pattern, s string) bool {
	head, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == s
	}
	s, ok := strings.CutPrefix(s, head)
	if !ok {
		return false
	}
	for {
		part, next, star := strings.Cut(rest, "*")
		if !star {
			return strings.HasSuffix(s, part)
		}
		i := strings.Index(s, part)
		if i < 0 {
			return false
		}
		s, rest = s[i+len(part):], next
	}
}

// kinds are the dialects that an upstream is known to speak, nil if its requests
// tell.
func (o *origin) kinds() (all []string) {
	host, family := o.target.URL.Host, o.family.Name()
	switch {
	case o.Dialect != "":
		return []string{o.Dialect}
	case o.Name == "openai", strings.HasSuffix(host, "api.openai.com"):
		for _, p := range protectedPaths {
			if p.upstream == "openai" {
				all = append(all, p.dialect.Name())
			}
		}
		return all
	case family == "gemini":
		return []string{family, interactions.Dialect{}.Name()}
	case o.Name == "anthropic", strings.Contains(host, "anthropic"):
		return []string{family}
	}
	return nil
}

// inBoth is what two lists share.
func inBoth(a, b []string) (both []string) {
	for _, s := range a {
		if slices.Contains(b, s) {
			both = append(both, s)
		}
	}
	return both
}

// mayHear reports whether an upstream may be sent a request of a dialect.
func (o *origin) mayHear(kind string) bool {
	k := o.kinds()
	return k == nil || slices.Contains(k, kind)
}

// ownCredential reports whether an upstream needs none of the caller's.
func (o *origin) ownCredential() bool {
	if o.Credential.Name != "" {
		return true
	}
	for _, f := range o.Header {
		if credentialHeader(f.Name) {
			return true
		}
	}
	return false
}

// sameHost reports whether two upstreams are one host, to which one credential may
// be shown.
func (o *origin) sameHost(p *origin) bool {
	return o == p || hostOf(o.target.URL) == hostOf(p.target.URL) && o.Host == p.Host && o.SNI == p.SNI
}

func hostOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443"}[u.Scheme]
		if port == "" {
			port = "80"
		}
	}
	safe := u.Scheme == "https" // a key that travelled under TLS does not travel without
	return fmt.Sprintf("%v %s:%s", safe, strings.ToLower(u.Hostname()), port)
}

// leg is one target of a request, ready to be asked.
type leg struct {
	to      *origin
	model   string // that breaker and abilities know it by
	path    string // path and query
	own     string // of an upgraded call: where its client asked
	breaker *breaker
}

// legs are the targets of a request, and the policy that goes with them.
func (s *Server) legs(r *request) ([]leg, relay.Config) {
	cfg := r.under.cfg.Relay
	r.background, r.upgrade = false, r.to.Upgrade
	to := []RouteTarget{{Upstream: r.to.Name}}
	for i := range r.under.cfg.Routes {
		w := &r.under.cfg.Routes[i]
		if r.routed(w) {
			to = w.Targets
			w.govern(&cfg)
			r.background, r.upgrade = w.Background, w.Upgrade || r.to.Upgrade
			break
		}
	}
	one := &struct { // nearly always
		leg    [1]leg
		target [1]relay.Target
	}{}
	all := one.leg[:0]
	cfg.Targets = one.target[:0]
	for _, t := range to {
		l := leg{to: r.under.origins[t.Upstream], model: t.Model}
		if l.model == "" {
			l.model = r.asks.Model
		}
		l.path = r.pathAt(l.to)
		if named, ok := withModel(r.speaks, l.path, l.model); ok {
			if t.Model != "" { // else it stays as it is spelled
				l.path = named
			}
			t.Model = ""
		}
		l.breaker = r.under.breakers.of(l.to.Name, l.model)
		all = append(all, l)
		cfg.Targets = append(cfg.Targets, relay.Target{
			Name: t.Upstream, Model: t.Model, Larger: t.For == ForOverflow, Ability: s.abilities.of(l.to, r.speaks.Name(), l.model),
		})
	}
	return all, cfg
}

// routed reports whether route w is for request r.
func (r *request) routed(w *Route) bool {
	if named(w, r.under.origins) != r.to.Name || !matches(w.Model, r.asks.Model) {
		return false
	}
	for _, t := range w.Targets {
		if !r.under.origins[t.Upstream].mayHear(r.speaks.Name()) {
			return false
		}
	}
	return true
}

// govern puts the clocks of a route in place of the common ones.
func (w *Route) govern(c *relay.Config) {
	for _, k := range []struct {
		to *time.Duration
		d  time.Duration
	}{
		{&c.Watch.FirstToken, w.FirstToken}, {&c.Watch.Idle, w.Idle}, {&c.Watch.Progress, w.Progress}, {&c.Watch.FloorSpan, w.FloorSpan},
	} {
		if k.d != 0 {
			*k.to = k.d
		}
	}
	if w.Floor > 0 {
		c.Watch.Floor = w.Floor
	}
}

// pathAt is the request's path and query at an upstream. A credential in the query
// goes to the host that the request named only.
func (r *request) pathAt(o *origin) string {
	if o == r.to {
		return r.path
	}
	rest := r.tail
	if path, query, ok := strings.Cut(rest, "?"); ok && !o.sameHost(r.to) {
		var kept []string
		for pair := range strings.SplitSeq(query, "&") {
			name, _, _ := strings.Cut(pair, "=")
			if !credentialQuery(name) {
				kept = append(kept, pair)
			}
		}
		rest = path
		if len(kept) > 0 {
			rest += "?" + strings.Join(kept, "&")
		}
	}
	return Join(o.base, rest)
}

// credentialQuery reports query parameters that callers identify themselves by.
func credentialQuery(name string) bool {
	if plain, err := url.QueryUnescape(name); err == nil {
		name = plain
	}
	switch strings.ToLower(name) {
	case "key", "api_key", "api-key", "apikey", "access_token", "token":
		return true
	}
	return false
}

// privateHeader reports fields that a caller means for the host it named only.
func privateHeader(name string) bool {
	for _, n := range []string{"Cookie", "Proxy-Authorization", "OpenAI-Organization", "OpenAI-Project", "x-goog-user-project"} {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return credentialHeader(name)
}

// header is the header of request r at l. What identifies the caller stays with
// the host that the request named.
func (l *leg) header(r *request, drop func(name string) bool) upstream.Header {
	foreign := !l.to.sameHost(r.to)
	return l.to.upward(r.header, func(name string) bool {
		return foreign && privateHeader(name) || drop != nil && drop(name)
	})
}
