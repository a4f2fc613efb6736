package telemetry

import (
	"github.com/unbroken-llm/unbroken/proxy"
	"github.com/unbroken-llm/unbroken/relay"
)

// Fan is an observer that passes on to several.
type Fan []proxy.Observer

// Begin implements [proxy.Observer].
func (f Fan) Begin(s proxy.Subject) proxy.Listener {
	to := make(listeners, 0, len(f))
	for _, o := range f {
		if l := o.Begin(s); l != nil {
			to = append(to, l)
		}
	}
	return to
}

type listeners []proxy.Listener

// Note implements [proxy.Listener].
func (ls listeners) Note(n relay.Note) {
	for _, l := range ls {
		l.Note(n)
	}
}

// End implements [proxy.Listener].
func (ls listeners) End(o proxy.Outcome) {
	for _, l := range ls {
		l.End(o)
	}
}
