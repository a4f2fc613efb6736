package proxy

import (
	"maps"
	"reflect"
	"slices"

	"github.com/unbroken-llm/unbroken/upstream"
)

// terms are what a request is served under: the configuration, and what was made of
// it. They are immutable but for what counts in breakers and guards. A request has
// those that were in force when its head came, to the end of its stream; [Server.Reload]
// puts others in their place for those to come.
type terms struct {
	cfg      Config
	client   *upstream.Client
	origins  map[string]*origin
	breakers *breakers
	// leaving are origins that earlier terms named and these do not, for as long as
	// streams go on there.
	leaving []*origin
}

// newTerms makes terms of a configuration with its defaults.
func newTerms(c Config, client *upstream.Client) (*terms, error) {
	t := &terms{cfg: c, client: client, origins: map[string]*origin{}}
	for _, u := range c.Upstreams {
		base, err := u.parse()
		if err != nil {
			return nil, err
		}
		t.origins[u.Name] = newOrigin(u, base)
	}
	t.breakers = &breakers{cfg: c.Breaker, log: c.Log, all: map[breakerKey]*breaker{}}
	return t, nil
}

// Reload serves the requests whose heads come from now on under c: its upstreams with
// their credentials, its routes, timings and limits. Requests in flight go on under the
// configuration they began with, also where that names upstreams which c does not. What
// was learned of a provider that stays where it was (breakers, pace) is kept, and unused
// connections to one that is gone are closed. A Client that c names takes the place of the
// one in use, nil keeps it.
//
// What is made once stays as it was whatever c says: Store, Ledger, ScopeKey, Observer,
// Log, MaxHeader, HeaderTimeout and IdleTimeout. On an error nothing changes. Reload is
// not to be called concurrently with itself.
func (s *Server) Reload(c Config) error {
	c.Log = s.cfg.Log
	c = c.withDefaults()
	if err := c.Validate(); err != nil {
		return err
	}
	old := s.terms.Load()
	client := old.client
	if c.Client != nil {
		client = c.Client
	}
	t, err := newTerms(c, client)
	if err != nil {
		return err
	}
	t.inherit(old)
	t.tellOfBackground()
	s.dog.stall.Store(int64(c.WriteStall))
	s.terms.Store(t)
	s.gate.limit(&c)
	s.abilities.forget(old.replacedBy(t))
	if client != old.client {
		old.client.Keep(nil)
	}
	client.Keep(t.targets())
	return nil
}

// inherit takes over what old terms know of providers that stay.
func (t *terms) inherit(old *terms) {
	for name, o := range t.origins {
		was := old.origins[name]
		switch {
		case was == nil:
		case was.sameAs(o):
			t.origins[name] = was
		case was.sameProvider(o):
			o.guard = was.guard
			if o.TLS.Equal(was.TLS) { // its connections go on to be used
				o.TLS, o.target.TLS = was.TLS, was.TLS
			}
		}
	}
	t.breakers = old.breakers.inherited(t.cfg.Breaker, func(name string) bool {
		is, was := t.origins[name], old.origins[name]
		return is != nil && was != nil && is.guard == was.guard
	})
	for _, o := range append(slices.Collect(maps.Values(old.origins)), old.leaving...) {
		if is := t.origins[o.Name]; (is == nil || is.guard != o.guard) && o.guard.count() > 0 {
			t.leaving = append(t.leaving, o)
		}
	}
}

// replacedBy are the origins of t that others have taken the place of.
func (t *terms) replacedBy(others *terms) (gone []*origin) {
	for name, o := range t.origins {
		if others.origins[name] != o {
			gone = append(gone, o)
		}
	}
	return gone
}

func (t *terms) targets() (all []*upstream.Target) {
	for _, o := range t.origins {
		all = append(all, &o.target)
	}
	return all
}

// states tells of the upstreams, by name, those that are leaving among them.
func (t *terms) states() []UpstreamState {
	known := map[string]UpstreamState{}
	for name, o := range t.origins {
		known[name] = o.guard.state(name)
	}
	for _, o := range t.leaving {
		s := o.guard.state(o.Name)
		if s.Live == 0 {
			continue
		}
		sum, ok := known[o.Name]
		if !ok {
			sum = UpstreamState{Name: o.Name}
		}
		sum.Live, sum.Recoveries, sum.Waiting = sum.Live+s.Live, sum.Recoveries+s.Recoveries, sum.Waiting+s.Waiting
		known[o.Name] = sum
	}
	all := make([]UpstreamState, 0, len(known))
	for _, name := range slices.Sorted(maps.Keys(known)) {
		all = append(all, known[name])
	}
	return all
}

// sameProvider reports whether two origins are one provider at one address, whose
// health is one.
func (o *origin) sameProvider(p *origin) bool {
	return o.URL == p.URL && o.Host == p.Host && o.SNI == p.SNI && o.HTTP1 == p.HTTP1
}

// sameAs reports whether two origins were made of the same words and files.
func (o *origin) sameAs(p *origin) bool {
	a, b := o.Upstream, p.Upstream
	a.TLS, b.TLS = nil, nil // pools and keys are compared by what they hold
	return reflect.DeepEqual(a, b) && o.TLS.Equal(p.TLS)
}
