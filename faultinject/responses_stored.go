package faultinject

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// stored serves requests for a response that is on the shelf: retrieval,
// resumption of a stream of the background, cancellation, deletion.
func (s *Server) stored(id int, responseID, act string, in received, w wire) Ending {
	s.log.update(id, func(x *Exchange) { x.Dialect = Responses })
	ok := func(body []byte) Ending {
		s.log.update(id, func(x *Exchange) { x.Status = http.StatusOK })
		return whole(w, http.StatusOK, "req_"+label(s.cfg.Seed, fmt.Sprint(id)), body, Complete)
	}
	no := func(r *Refusal) Ending { return s.refuse(id, Responses, r, w) }
	if r := checkKey(in.header); r != nil {
		return no(r)
	}
	kept, found := s.shelf.get(responseID)
	if !found {
		return no(&Refusal{Status: 404, Type: "invalid_request_error", Message: fmt.Sprintf("Response with id '%s' not found.", responseID)})
	}
	s.log.update(id, func(x *Exchange) { x.Model = kept.options.Model })
	switch {
	case in.method == http.MethodGet && act == "":
		after, stream, r := kept.from(in.path)
		switch {
		case r != nil:
			return no(r)
		case stream:
			return s.resume(id, Responses, kept, after+1, in, w)
		}
		return ok(kept.object(time.Now()))
	case in.method == http.MethodDelete && act == "":
		s.shelf.drop(responseID)
		return ok(fmt.Appendf(nil, `{"id":%s,"object":"response","deleted":true}`, quote(responseID)))
	case in.method == http.MethodPost && act == "cancel":
		if !kept.background {
			return no(invalid("Cannot cancel a synchronous response."))
		}
		kept.cancel(time.Now())
		return ok(kept.object(time.Now()))
	}
	return no(&Refusal{Status: 404, Type: "invalid_request_error", Message: "Invalid URL (" + in.method + " " + in.path + ")"})
}

// from reads where a stream shall start: after is the last sequence number the
// client has, -1 if it has none. The words of the refusals are ours except
// where a comment says otherwise.
func (r *keptResponse) from(path string) (after int, stream bool, no *Refusal) {
	after = -1
	u, err := url.Parse(path)
	if err != nil {
		return after, false, invalid("Invalid URL: %v", err)
	}
	q := u.Query()
	stream = q.Get("stream") == "true"
	if q.Has("starting_after") {
		if !stream {
			return after, false, invalidParam("starting_after", "The 'starting_after' parameter is only allowed when 'stream' is enabled.")
		}
		if after, err = strconv.Atoi(q.Get("starting_after")); err != nil || after < 0 {
			return after, stream, invalidParam("starting_after", "Invalid 'starting_after': expected a sequence number, but got '%s' instead.", q.Get("starting_after"))
		}
	}
	switch {
	case !stream:
	case !r.background || !r.streamed: // the guide: only if it was created with both
		no = invalid("This response cannot be streamed because it was not created with background=true and stream=true.")
	case after >= r.made(time.Now()):
		no = invalidParam("starting_after", "Invalid 'starting_after': %d is beyond the last event of this response.", after)
	}
	return after, stream, no
}

// resume streams the events from the given one on, byte for byte as they were
// numbered first. It is one more attempt of the turn.
func (s *Server) resume(id int, dialect Dialect, kept *keptResponse, first int, in received, w wire) Ending {
	script, err := s.script(in.header)
	if err != nil {
		return s.refuse(id, dialect, invalid("%s: %v", HeaderScript, err), w)
	}
	attempt := s.turns.count(kept.turn)
	tr := script.For(Query{Attempt: attempt, Turn: kept.turnNo, Model: kept.options.Model})
	if r := unmet(tr.Faults, w.transport(), dialect.framing(kept.options)); r != nil {
		return s.refuse(id, dialect, r, w)
	}
	s.log.update(id, func(x *Exchange) {
		x.Turn, x.TurnNo, x.Attempt, x.Fault = kept.turn, kept.turnNo, attempt, tr.Text
		x.Continuation = Continuation{Manner: Resumed}
	})
	rest := kept.events[first:]
	d := &drive{w: w, faults: tr.Faults, closed: s.closing, total: total(rest), kept: kept, first: first,
		pos: Position{Dialect: dialect, Model: kept.options.Model, ID: kept.options.ID, Total: len(rest), Seed: s.cfg.Seed, Options: kept.options}}
	salt := label(s.cfg.Seed, kept.turn, fmt.Sprint(id))
	end := d.play(eventStream(salt), rest)
	if end == Complete || d.finished {
		s.turns.done(kept.turn)
	}
	s.settle(id, d)
	return end
}

// due waits until the background has made an event; it reports false when it
// never will.
func (d *drive) due(index int) (bool, Ending) {
	k := d.kept
	for k != nil && index >= k.made(time.Now()) {
		if k.isCancelled() {
			return false, ""
		}
		if end := d.waitOr(max(time.Millisecond, time.Until(k.started.Add(time.Duration(index)*k.pace))), k.stop); end != "" {
			return false, end
		}
	}
	return true, ""
}
