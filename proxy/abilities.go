package proxy

import (
	"maps"
	"slices"
	"sync"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/turn"
)

// maxLearned bounds what is remembered of hosts and models.
const maxLearned = 4096

// abilities is what is known of targets: configuration, then the house's table,
// less what targets have shown not to take (DESIGN §4).
type abilities struct {
	found found // guarded by mu

	mu      sync.Mutex
	learned map[learnedKey][]turn.Manner // rejected
	whole   map[learnedKey]bool          // does not stream
}

type learnedKey struct{ dialect, host, model string }

func newAbilities() *abilities {
	return &abilities{learned: map[learnedKey][]turn.Manner{}, whole: map[learnedKey]bool{}}
}

// of returns the ability of o for a model in a dialect. Its slices are shared and not
// changed.
func (a *abilities) of(o *origin, speaks, model string) dialect.Ability {
	k := foundKey{o, speaks, model}
	a.mu.Lock()
	defer a.mu.Unlock()
	ab, ok := a.found[k]
	if !ok {
		ab = a.find(o, speaks, model)
		a.found.keep(k, ab)
	}
	return ab
}

// find reads the tables. mu is held.
func (a *abilities) find(o *origin, speaks, model string) dialect.Ability {
	e := dialect.Endpoint{Dialect: speaks, Host: o.host, Model: model}
	ab, ok := dialect.Match(o.Abilities, e)
	if !ok {
		ab = dialect.AbilityOf(e)
	}
	rejected := a.learned[learnedKey{speaks, o.host, model}]
	if len(rejected) > 0 {
		ab.Manners = slices.DeleteFunc(slices.Clone(ab.Manners), func(m turn.Manner) bool { return slices.Contains(rejected, m) })
	}
	return ab
}

// demote remembers that a host rejected a manner for a model in a dialect, for the
// streams to come. When the memory is full, something is forgotten: it can be learned again.
func (a *abilities) demote(o *origin, speaks, model string, m turn.Manner) {
	k := learnedKey{speaks, o.host, model}
	a.mu.Lock()
	defer a.mu.Unlock()
	if slices.Contains(a.learned[k], m) {
		return
	}
	clear(a.found)
	if len(a.learned) >= maxLearned {
		for old := range a.learned {
			delete(a.learned, old)
			break
		}
	}
	a.learned[k] = append(slices.Clone(a.learned[k]), m)
}

// forget drops what is known of origins that are gone. What their hosts have shown is
// asked anew: whoever changes an upstream may have changed the server behind it.
func (a *abilities) forget(gone []*origin) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(gone) > 0 {
		clear(a.found)
	}
	for _, o := range gone {
		maps.DeleteFunc(a.learned, func(k learnedKey, _ []turn.Manner) bool { return k.host == o.host })
		maps.DeleteFunc(a.whole, func(k learnedKey, _ bool) bool { return k.host == o.host })
	}
}

// streamless reports whether a host refused to stream a model's answers in a dialect.
func (a *abilities) streamless(o *origin, speaks, model string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.whole[learnedKey{speaks, o.host, model}]
}

// unstream remembers that it did.
func (a *abilities) unstream(o *origin, speaks, model string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.whole) >= maxLearned {
		clear(a.whole)
	}
	a.whole[learnedKey{speaks, o.host, model}] = true
}
