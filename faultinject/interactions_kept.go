package faultinject

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// keepInteraction puts an interaction on the shelf before the first of it is
// sent: whoever loses the stream finds it there. It returns nil for one that the
// provider does not keep.
func (s *Server) keepInteraction(p Prompt, t task, a Answer, o Options, pace time.Duration) *keptResponse {
	if !p.Stores {
		return nil
	}
	o = o.withDefaults(interactionPrefix)
	k := &keptResponse{options: o, answer: a, streamed: p.Stream, background: p.Background, turn: t.key, turnNo: t.turnNo,
		started: time.Now(), pace: pace, events: interactionsEvents(a, o), stop: make(chan struct{})}
	said := Prompt{Turns: append([]Turn(nil), p.Turns...)}
	for _, raw := range outputSteps(a, o) {
		step := interactionStep{raw: json.RawMessage(raw)}
		if err := json.Unmarshal(step.raw, &step); err != nil {
			panic("BUG: a step is no JSON: " + err.Error())
		}
		said.addStep(step)
	}
	k.turns = said.Turns
	s.shelf.put(k)
	return k
}

// interactionPath reads the path of a request for one interaction: its id, and
// what is asked of it beyond itself.
func interactionPath(path string) (id, act string, ok bool) {
	_, rest, ok := strings.Cut(path, "/interactions/")
	id, act, _ = strings.Cut(rest, "/")
	return id, act, ok && id != ""
}

// interaction serves requests for an interaction that is kept: retrieval,
// resumption of its stream, cancellation, deletion.
func (s *Server) interaction(id int, name, act string, in received, w wire) Ending {
	s.log.update(id, func(x *Exchange) { x.Dialect = Interactions })
	ok := func(body []byte) Ending {
		s.log.update(id, func(x *Exchange) { x.Status = http.StatusOK })
		return whole(w, http.StatusOK, "req_"+label(s.cfg.Seed, fmt.Sprint(id)), body, Complete)
	}
	no := func(r *Refusal) Ending { return s.refuse(id, Interactions, r, w) }
	if r := checkGoogleKey(in.header, in.path); r != nil {
		return no(r)
	}
	kept, found := s.shelf.get(name)
	if !found || !strings.HasPrefix(name, interactionPrefix) {
		return no(noInteraction(name))
	}
	s.log.update(id, func(x *Exchange) { x.Model = kept.options.Model })
	switch {
	case in.method == http.MethodGet && act == "":
		first, stream, r := kept.behind(in.path)
		switch {
		case r != nil:
			return no(r)
		case stream:
			return s.resume(id, Interactions, kept, first, in, w)
		}
		return ok(kept.interaction(time.Now()))
	case in.method == http.MethodDelete && act == "":
		s.shelf.drop(name)
		return ok([]byte(`{}`))
	case in.method == http.MethodPost && act == "cancel":
		if !kept.background {
			return no(badInteraction("Only an interaction that runs in the background can be cancelled."))
		}
		kept.cancel(time.Now())
		return ok(kept.interaction(time.Now()))
	}
	return no(&Refusal{Status: 404, Type: "not_found", Message: "Not found: " + in.method + " " + in.path})
}

// behind reads where a stream shall start: first is the index of the event behind
// the one that is named, zero if none is.
func (r *keptResponse) behind(path string) (first int, stream bool, no *Refusal) {
	_, query, _ := strings.Cut(path, "?")
	q, err := url.ParseQuery(query)
	if err != nil {
		return 0, false, badInteraction("The query cannot be read.")
	}
	stream = q.Get("stream") == "true"
	last := q.Get("last_event_id")
	switch {
	case last == "":
		return 0, stream, nil
	case !stream:
		return 0, stream, badInteraction("'last_event_id' can only be used if 'stream' is true.")
	}
	for i := range r.events {
		if eventID(r.options, i) == last {
			return i + 1, stream, nil
		}
	}
	return 0, stream, badInteraction("'last_event_id' '%s' names no event of this interaction.", last)
}

// interaction is the resource as it stands.
func (r *keptResponse) interaction(now time.Time) []byte {
	switch n := r.made(now); {
	case r.isCancelled():
		return []byte(interactionObject(r.options, "cancelled", interactionTimes(r.options)))
	case n < len(r.events):
		return []byte(interactionObject(r.options, "in_progress", interactionTimes(r.options)))
	}
	return interactionsWhole(r.answer, r.options)
}
