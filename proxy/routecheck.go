package proxy

import (
	"fmt"
	"strings"
	"time"
)

// RouteProblem is one thing that is wrong with a route. Key is its path within the
// route: "targets[1].upstream".
type RouteProblem struct {
	Route     int
	Key, What string
}

func (p RouteProblem) Error() string { return fmt.Sprintf("routes[%d].%s: %s", p.Route, p.Key, p.What) }

// longest is the longest time that a clock of a route may be set to.
const longest = 24 * time.Hour

// RouteProblems returns what is wrong with the routes of c, whose upstreams are in
// order.
func (c Config) RouteProblems() (all []RouteProblem) {
	c = c.withDefaults()
	known := map[string]*origin{}
	for i := range c.Upstreams {
		if base, err := c.Upstreams[i].parse(); err == nil {
			known[c.Upstreams[i].Name] = newOrigin(c.Upstreams[i], base)
		}
	}
	for i := range c.Routes {
		r := routeCheck{n: i, r: &c.Routes[i], known: known}
		r.model(c.Routes[:i])
		r.targets()
		r.timings()
		r.held()
		all = append(all, r.found...)
	}
	return all
}

// routeCheck looks at one route.
type routeCheck struct {
	n     int
	r     *Route
	known map[string]*origin
	found []RouteProblem
}

func (c *routeCheck) say(key, format string, a ...any) {
	c.found = append(c.found, RouteProblem{c.n, key, fmt.Sprintf(format, a...)})
}

// model refuses a pattern that no request can reach.
func (c *routeCheck) model(earlier []Route) {
	switch p := c.r.Model; {
	case p == "":
		c.say("model", "is empty and would match nothing: write a pattern, for instance gpt-* or *")
		return
	case strings.ContainsAny(p, "?[]\\ \t\"") || len(p) > 256:
		c.say("model", "%q is no pattern of a model name: only * stands for other letters", clip(p))
		return
	}
	for i := range earlier {
		e := &earlier[i]
		if e.Model != "" && matches(e.Model, c.r.Model) && named(e, c.known) == named(c.r, c.known) {
			c.say("model", "would match nothing: routes[%d] (%s) takes all of its requests; put the narrower one first", i, e.Model)
			return
		}
	}
}

// named is the upstream that requests of a route name, "" if that cannot be told.
func named(r *Route, known map[string]*origin) string {
	if r.Upstream != "" {
		return r.Upstream
	}
	for _, t := range r.Targets {
		if o := known[t.Upstream]; o != nil && o.kinds() != nil {
			return atRoot(o.kinds()[0])
		}
	}
	return protectedPaths[0].upstream
}

// atRoot is the upstream that requests of a dialect name at the root.
func atRoot(kind string) string {
	for _, p := range protectedPaths {
		if p.dialect.Name() == kind {
			return p.upstream
		}
	}
	if strings.HasPrefix(kind, "bedrock-") {
		return "bedrock"
	}
	return kind // gemini
}

// targets refuses targets that do not exist, do not speak the same dialect, come
// again, or would be sent a credential that is not for them.
func (c *routeCheck) targets() {
	r := c.r
	if len(r.Targets) == 0 {
		c.say("targets", "is empty: name at least one upstream")
		return
	}
	from := c.known[named(r, c.known)]
	if from == nil {
		c.say("upstream", "no upstream is called %q", clip(r.Upstream))
		return
	}
	seen, kinds, first := map[RouteTarget]bool{}, from.kinds(), from.Name
	for i, t := range r.Targets {
		at := fmt.Sprintf("targets[%d]", i)
		o := c.known[t.Upstream]
		switch same := (RouteTarget{Upstream: t.Upstream, Model: t.Model}); {
		case o == nil:
			c.say(at+".upstream", "no upstream is called %q", clip(t.Upstream))
			continue
		case seen[same]:
			c.say(at, "is in the route already: a turn would go in a loop")
			continue
		default:
			seen[same] = true
		}
		switch k := o.kinds(); {
		case kinds == nil:
			kinds, first = k, o.Name
		case k == nil:
		case len(inBoth(kinds, k)) == 0:
			c.say(at+".upstream", "%s speaks %s, but %s speaks %s: the targets of a route speak one dialect", o.Name, strings.Join(k, " and "), first, strings.Join(kinds, " and "))
		default:
			kinds = inBoth(kinds, k)
		}
		if !o.ownCredential() && !o.sameHost(from) {
			c.say(at+".upstream", "%s is another host than %s, which the requests name, and has no credential of its own: a caller's key is for the host it was given to; set upstreams.%s.credential", o.Name, from.Name, o.Name)
		}
		if t.For != "" && t.For != ForOverflow {
			c.say(at+".for", "%q is not known: use %s, or leave it out", clip(t.For), ForOverflow)
		}
		if t.For != "" && i == 0 {
			c.say(at+".for", "the first target is for every request: put it behind another")
		}
	}
}

func (c *routeCheck) timings() {
	for _, t := range []struct {
		key string
		d   time.Duration
		off bool // may be switched off
	}{
		{"first_token", c.r.FirstToken, true}, {"idle", c.r.Idle, true}, {"progress", c.r.Progress, true}, {"floor_span", c.r.FloorSpan, false},
	} {
		switch {
		case t.d > longest:
			c.say(t.key, "%s is longer than a day", t.d)
		case t.d < 0 && !t.off:
			c.say(t.key, "is negative")
		case t.d > 0 && t.d < time.Millisecond:
			c.say(t.key, "%s is too short for any provider", t.d)
		}
	}
	switch {
	case c.r.Floor < 0:
		c.say("floor", "is negative")
	case c.r.Floor > 1<<30:
		c.say("floor", "%d bytes a second is more than any provider sends", c.r.Floor)
	}
}
