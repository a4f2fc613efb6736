package telemetry

import (
	"github.com/unbroken-llm/unbroken/proxy"
	"github.com/unbroken-llm/unbroken/relay"
)

// Fan is an observer that passes on to several.
type Fan []proxy.Observer

// Begin implements [proxy.Observer].
func (f Fan) Begin(s proxy.Subject) proxy.Listener {
	to := &listeners{}
	to.all = to.room[:0]
	for _, o := range f {
		if l := o.Begin(s); l != nil {
			to.all = append(to.all, l)
		}
	}
	return to
}

type listeners struct {
	all  []proxy.Listener
	room [2]proxy.Listener // for nearly all of them
}

// Note implements [proxy.Listener].
func (ls *listeners) Note(n relay.Note) {
	for _, l := range ls.all {
		l.Note(n)
	}
}

// End implements [proxy.Listener].
func (ls *listeners) End(o proxy.Outcome) {
	for _, l := range ls.all {
		l.End(o)
	}
}
