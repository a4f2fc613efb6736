package proxy

import (
	"strings"
	"time"

	"github.com/unbroken-llm/unbroken/relay"
)

// Observer is told of every protected stream. Begin is called from the streams'
// drivers, many at a time, and must not block.
type Observer interface {
	// Begin is told of a stream before anything else of it, and returns who hears
	// the rest; nil: nobody does.
	Begin(Subject) Listener
}

// Listener hears of one stream: by one goroutine at a time, never per event, and
// without waiting for it.
type Listener interface {
	Note(relay.Note)
	// End is told last, and once.
	End(Outcome)
}

// Subject is a stream as observers know it. Its strings are bounded and valid UTF-8,
// but Model, Run and Trace are the client's to choose.
type Subject struct {
	Run             string
	Dialect         string
	Upstream, Model string  // that the request names
	Targets         []Asked // by relay.Note.Target
	Began           time.Time
	Trace           string // the client's traceparent field (W3C Trace Context)
}

// Asked is whom an attempt asks.
type Asked struct{ Upstream, Model string }

// Outcome is how a stream ended.
type Outcome struct {
	At    time.Time
	Whose Whose
	// Token is the outcome's name, as the stream's log line tells it; behind a colon
	// a reason may follow.
	Token   string
	Summary relay.Summary
}

// Whose says whose doing the end of a stream was (DESIGN §1.7).
type Whose uint8

const (
	Completed Whose = iota // the client has a whole answer
	Client                 // it left, or did not read
	Us                     // drain, takeover, a bug
	Provider               // it failed, and nothing helped
	Request                // refused for good by the provider
)

func (w Whose) String() string {
	return [...]string{"completed", "client", "us", "provider", "request"}[w]
}

// introduce tells the observer of the stream.
func (d *drive) introduce() {
	o := d.srv.cfg.Observer
	if o == nil {
		return
	}
	s := Subject{
		Run: string(d.req.run), Dialect: d.req.speaks.Name(), Upstream: d.req.to.Name, Model: shown(d.req.asks.Model),
		Targets: make([]Asked, len(d.legs)), Began: d.tale.began, Trace: shown(d.req.header.Get("Traceparent")),
	}
	for i := range d.legs {
		s.Targets[i] = Asked{Upstream: d.legs[i].to.Name, Model: shown(d.legs[i].model)}
	}
	d.heard = o.Begin(s)
}

// shown bounds what a client controls before others print it.
func shown(s string) string { return strings.ToValidUTF8(clip(s), "\uFFFD") }
