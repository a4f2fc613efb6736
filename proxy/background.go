package proxy

import (
	"slices"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/openairesponses"
	"github.com/unbroken-llm/unbroken/turn"
)

// headerBackground tells of a response whose provider was asked to hold it, which the
// caller did not ask for.
const headerBackground = "X-Unbroken-Background"

// background asks the provider to hold the generation (WIRE 2.2), where the route says
// so and the request permits it. It returns what goes up first. A provider that once
// refused is not asked again.
func (d *drive) background(plain []byte) []byte {
	b, ok := d.req.speaks.(dialect.Backgrounder)
	if l := &d.legs[0]; !ok || !d.req.background || d.srv.abilities.rejects(l.to, d.req.speaks.Name(), l.model, turn.Provider) {
		return plain
	}
	held := b.Background(d.req.asks, plain)
	if held == nil {
		return plain
	}
	d.first, d.repaired, d.req.asks.Veiled = held, true, true
	return held
}

// rejects reports whether a host rejected a manner for a model in a dialect.
func (a *abilities) rejects(o *origin, speaks, model string, m turn.Manner) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Contains(a.learned[learnedKey{speaks, o.host, model}], m)
}

// tellOfBackground says when they come into force which routes have providers keep what they are
// not asked to keep.
func (t *terms) tellOfBackground() {
	for i := range t.cfg.Routes {
		if r := &t.cfg.Routes[i]; r.Background {
			t.cfg.Log.Warn("a route turns on background: the provider stores these responses for some minutes, also for zero-data-retention projects", "model", r.Model)
		}
	}
}

// held refuses the option where nothing is held by being asked.
func (c *routeCheck) held() {
	from := c.known[named(c.r, c.known)]
	if c.r.Background && from != nil && !from.mayHear(openairesponses.Dialect{}.Name()) {
		c.say("background", "is for OpenAI Responses, which %s does not speak", from.Name)
	}
}
