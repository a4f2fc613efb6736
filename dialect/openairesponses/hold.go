package openairesponses

import (
	"bytes"
	"strconv"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
)

var (
	_ dialect.Holder       = Dialect{}
	_ dialect.Backgrounder = Dialect{}
	_ dialect.Tracker      = (*decoder)(nil)
	_ dialect.Veiler       = (*decoder)(nil)
)

// Attach re-attaches to a background response: GET …/responses/{id} streams the events behind starting_after, byte for
// byte as they were or would have been (WIRE 2.1, recorded), or all of them without one.
func (Dialect) Attach(g dialect.Grip) dialect.Errand {
	e := dialect.Errand{Method: "GET", Below: "/" + g.ID, Query: "stream=true"}
	if g.At != "" {
		e.Query += "&starting_after=" + g.At
	}
	return e
}

// Cancel ends a background response, which a lost connection does not (WIRE 2.2).
func (Dialect) Cancel(_ *dialect.Request, g dialect.Grip) (dialect.Errand, bool) {
	return dialect.Errand{Method: "POST", Below: "/" + g.ID + "/cancel"}, true
}

// Background asks for a background response. It is not for callers who said that nothing may be stored, which a
// background response is for some minutes in any case (WIRE 2.2), nor for those who decided about it themselves.
func (Dialect) Background(r *dialect.Request, body []byte) []byte {
	if stored, said := jsonwalk.Bool(jsonwalk.Get(body, "store")); said && !stored || !r.Stream || jsonwalk.Get(body, "background") != nil {
		return nil
	}
	return jsonwalk.SetMember(nil, body, "background", []byte("true"))
}

// Foreground takes that back.
func (Dialect) Foreground(body []byte) []byte { return jsonwalk.DeleteMember(nil, body, "background") }

// track is where a decoder is in the provider's row of events.
type track struct {
	id     string // of a response that the provider holds, until it fails
	at     int64  // number of the last event, as the provider counts; -1 before the first
	veiled int64  // events that the client does not see
}

// grasp reads whether a response that was just created is held: it says so itself, and its events are numbered.
func (t *track) grasp(f *frame) {
	if held, _ := jsonwalk.Bool(jsonwalk.Get(f.response, "background")); !held || f.seq == nil {
		return
	}
	if id := text(jsonwalk.Get(f.response, "id")); dialect.SafeName(id) {
		t.id = id
	}
}

// reached notes the number of an event that the client sees.
func (t *track) reached(f *frame) {
	if f.seq != nil {
		t.at = max(t.at, number(f.seq)+t.veiled)
	}
}

// Grip implements [dialect.Tracker].
func (t *track) Grip() dialect.Grip {
	switch {
	case t.id == "":
		return dialect.Grip{}
	case t.at < 0:
		return dialect.Grip{ID: t.id}
	}
	return dialect.Grip{ID: t.id, At: strconv.FormatInt(t.at, 10)}
}

// Attached implements [dialect.Tracker]: numbers tell everything.
func (*track) Attached() {}

// Repeated implements [dialect.Tracker].
func (t *track) Repeated(e sse.Event) bool {
	f, err := readFrame(e)
	return err == nil && f.seq != nil && number(f.seq) <= t.at
}

// Veil shows a background response as the one in the foreground that the caller asked for: not queued but begun, and
// numbered as if response.queued had never been.
func (t *track) Veil(e sse.Event) (sse.Event, bool) {
	if silent(e.Data) || done(e.Data) {
		return e, true
	}
	f, err := readFrame(e)
	if err != nil {
		return e, true
	}
	var ps []jsonwalk.Patch
	switch string(f.typ) {
	case "response.queued":
		t.reached(&f)
		t.veiled++
		return sse.Event{}, false
	case "response.created":
		t.grasp(&f)
	}
	if t.veiled > 0 && f.seq != nil {
		ps = append(ps, patch(e.Data, f.seq, decimal(number(f.seq)-t.veiled)))
	}
	if v := jsonwalk.Get(f.response, "background"); string(v) == "true" {
		ps = append(ps, patch(e.Data, v, []byte("false")))
	}
	if v := jsonwalk.Get(f.response, "status"); string(v) == `"queued"` {
		ps = append(ps, patch(e.Data, v, []byte(`"in_progress"`)))
	}
	if len(ps) == 0 {
		return e, true
	}
	return reworded(e, jsonwalk.ApplySorted(e.Data, ps)), true
}

// reworded is e with other data, framed as it was where its data is one line.
func reworded(e sse.Event, data []byte) sse.Event {
	raw := e.Raw
	if at := bytes.Index(raw, e.Data); at >= 0 {
		e.Raw = jsonwalk.Apply(nil, raw, []jsonwalk.Patch{{At: at, End: at + len(e.Data), With: data}})
		data = e.Raw[at : at+len(data)]
	} else if e.Raw = sse.Append(nil, string(e.Name), data); bytes.HasSuffix(raw, []byte("\r\n")) {
		e.Raw = bytes.ReplaceAll(e.Raw, []byte("\n"), []byte("\r\n"))
	}
	e.Data = data
	return e
}
