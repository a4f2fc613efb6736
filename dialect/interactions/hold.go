package interactions

import (
	"bytes"
	"hash/crc32"
	"net/url"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
)

var (
	_ dialect.Holder  = Dialect{}
	_ dialect.Tracker = (*Decoder)(nil)
)

// Attach implements dialect.Holder: GET …/interactions/{id} streams what comes behind
// the event that last_event_id names, or everything (WIRE 2.1; interactions.get).
func (Dialect) Attach(g dialect.Grip) dialect.Errand {
	e := dialect.Errand{Method: "GET", Below: "/" + g.ID, Query: "stream=true"}
	if g.At != "" {
		e.Query += "&last_event_id=" + url.QueryEscape(g.At)
	}
	return e
}

// Cancel implements dialect.Holder. The provider cancels interactions that run in
// the background; any other ends with its connection.
func (Dialect) Cancel(r *dialect.Request, g dialect.Grip) (dialect.Errand, bool) {
	background, _ := jsonwalk.Bool(jsonwalk.Get(r.Body, "background"))
	return dialect.Errand{Method: "POST", Below: "/" + g.ID + "/cancel"}, background
}

// track is where a decoder is in an interaction that the provider keeps. Events need
// not have an id (none of the recordings has one): those behind the last that has
// are known by their number and sum.
type track struct {
	kept bool // asked for; the id of what is not kept names nothing
	id   string
	last string // id of the last event that has one
	said tail   // what came behind it

	fresh   bool // nothing came yet on the connection that attached again
	seeking bool // it began before last
	due     tail // what it may repeat behind last
	again   tail // what it did repeat
	strayed bool // and that was something else
}

// tail is a row of events that say something.
type tail struct {
	events int
	sum    uint32
	quiet  int // events behind them that say nothing
}

var table = crc32.MakeTable(crc32.Castagnoli)

func (t *tail) add(data []byte) {
	t.events, t.quiet = t.events+1, 0
	t.sum = crc32.Update(t.sum, table, data)
}

// grasp reads the name of an interaction that has begun.
func (t *track) grasp(interaction []byte) {
	if id := plain(jsonwalk.Get(interaction, "id")); t.kept && dialect.SafeName(id) {
		t.id = id
	}
}

// reached notes an event that was decoded.
func (t *track) reached(f *frame, data []byte) {
	switch {
	case t.id == "":
	case len(f.id) > 0:
		t.last, t.said = string(jsonwalk.Unescape(nil, f.id)), tail{}
	case f.tells():
		t.said.add(data)
	default:
		t.said.quiet++
	}
}

// tells reports whether an event is part of the story that every replay has to tell;
// how often a status is repeated in between may differ, and an error ends one
// connection.
func (f *frame) tells() bool {
	return string(f.typ) != "interaction.status_update" && f.fault == nil
}

// Grip implements dialect.Tracker.
func (t *track) Grip() dialect.Grip {
	if t.id == "" {
		return dialect.Grip{}
	}
	return dialect.Grip{ID: t.id, At: t.last}
}

// Attached implements dialect.Tracker.
func (t *track) Attached() {
	t.fresh, t.seeking, t.due, t.again, t.strayed = true, false, t.said, tail{}, false
}

// Repeated implements dialect.Tracker. A stream that begins with interaction.created
// begins at the start, whatever it was asked for.
func (t *track) Repeated(e sse.Event) bool {
	data := bytes.TrimSpace(e.Data)
	f, err := readFrame(data)
	if err != nil || len(data) == 0 || data[0] != '{' {
		return false
	}
	if f.typ == nil {
		f.typ = e.Name
	}
	if t.fresh {
		t.fresh = false
		t.seeking = t.last != "" && string(f.typ) == "interaction.created"
	}
	switch {
	case t.seeking:
		t.seeking = string(jsonwalk.Unescape(nil, f.id)) != t.last
		return true
	case t.again.events < t.due.events:
		if f.tells() {
			t.again.add(data)
			t.strayed = t.again.events == t.due.events && t.again.sum != t.due.sum
		}
		return true
	case f.tells():
		t.due.quiet = 0
		return false
	}
	t.again.quiet++
	return t.again.quiet <= t.due.quiet
}
