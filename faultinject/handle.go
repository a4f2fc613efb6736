package faultinject

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Headers a request may carry to steer its own treatment. A proxy relays them
// like any unknown header.
const (
	HeaderScenario = "X-Fault-Scenario" // name of a scenario
	HeaderTurn     = "X-Fault-Turn"     // key of the logical turn, for requests that look alike
	HeaderScript   = "X-Fault-Script"   // a script in place of the configured one, "|" between its lines
)

// handle answers one request. When it returns the response has ended.
func (s *Server) handle(ctx context.Context, in received, w wire) {
	x := Exchange{Received: time.Now(), Proto: string(w.transport()), Method: in.method, Path: in.path, Header: in.header, Body: in.body}
	id := s.log.begin(x)
	path, _, _ := strings.Cut(in.path, "?")
	var end Ending
	sp := speakerFor(in)
	switch {
	case strings.EqualFold(in.header.Get("Upgrade"), "websocket"):
		end = s.refuse(id, Chat, &Refusal{Status: http.StatusUpgradeRequired, Type: "invalid_request_error", Message: "This server speaks HTTP, not WebSocket."}, w)
	case s.cfg.Target != nil:
		end = s.relay(ctx, id, in, w)
	case sp != nil:
		end = s.answer(id, sp, in, w)
	default:
		end = s.side(id, path, in, w)
	}
	s.note(s.log.update(id, func(x *Exchange) { x.Ended, x.Ending = time.Now(), end }))
}

// note writes the log line of an exchange.
func (s *Server) note(x Exchange) {
	refusal := ""
	if x.Refusal != nil {
		refusal = x.Refusal.Error()
	}
	s.cfg.Logger.Info("exchange", "id", x.ID, "proto", x.Proto, "method", x.Method, "path", x.Path, "prompt_bytes", len(x.Body), "model", x.Model, "scenario", x.Scenario,
		"turn", x.Turn, "attempt", x.Attempt, "manner", string(x.Continuation.Manner), "seam", x.Seam, "status", x.Status,
		"fault", x.Fault, "applied", x.Applied, "events", x.Events, "bytes", x.Bytes, "ending", string(x.Ending), "refusal", refusal,
		"took", x.Ended.Sub(x.Received).Round(time.Millisecond))
}

// answer serves a message endpoint.
func (s *Server) answer(id int, sp speaker, in received, w wire) Ending {
	d := sp.dialect()
	p, unread := sp.prompt(s, in)
	s.log.update(id, func(x *Exchange) { x.Dialect, x.Model = d, p.Model })
	r := sp.check(s, in)
	if r == nil {
		r = s.checkIdempotency(in)
	}
	if r == nil && unread != nil {
		r = invalid("%v", unread)
	}
	script, err := s.script(in.header)
	if r == nil && err != nil {
		r = invalid("%s: %v", HeaderScript, err)
	}
	name := s.scenarioName(in.header, p.Model)
	if _, ok := scenarios[name]; r == nil && !ok {
		_, err := Scenario(name, p, s.cfg)
		r = &Refusal{Status: 404, Type: "not_found_error", Code: "model_not_found", Message: err.Error()}
	}
	if r != nil {
		return s.refuse(id, d, r, w)
	}
	fixed := in.header.Get(HeaderScenario) != "" || modelScenario(p.Model) != ""
	treat := func(attempt, turnNo int) (Treatment, string) {
		tr := script.For(Query{Attempt: attempt, Turn: turnNo, Model: p.Model})
		if tr.Scenario == "" || fixed {
			return tr, name
		}
		return tr, tr.Scenario
	}
	t := s.turns.understand(in.header.Get(HeaderTurn), p, sp.prefills(s.cfg.Host, p), func(q Prompt, attempt, turnNo int) Answer {
		_, name := treat(attempt, turnNo)
		return scenarios[name](q, s.cfg)
	})
	tr, name := treat(t.attempt, t.turnNo)
	seam := s.cfg.Seam
	if tr.Seam != nil {
		seam = *tr.Seam
	}
	a := s.compose(p, t, seam)
	s.log.update(id, func(x *Exchange) {
		x.Scenario, x.Turn, x.TurnNo, x.Attempt = name, t.key, t.turnNo, t.attempt
		x.Continuation, x.Fault = t.c, tr.Text
		if t.c.Manner != Fresh {
			x.Seam = seam.String()
		}
	})
	return s.send(id, p, t, a, tr, w)
}

// script is the request's own, or the configured one.
func (s *Server) script(h http.Header) (Script, error) {
	src := h.Get(HeaderScript)
	if src == "" {
		return s.cfg.Script, nil
	}
	return ParseScript([]byte(strings.ReplaceAll(src, "|", "\n")))
}

// scenarioName picks the scenario: header, model name, configuration.
func (s *Server) scenarioName(h http.Header, model string) string {
	if name := h.Get(HeaderScenario); name != "" {
		return name
	}
	if name := modelScenario(model); name != "" {
		return name
	}
	return s.cfg.Scenario
}

// checkIdempotency refuses a key that comes again with another body.
func (s *Server) checkIdempotency(in received) *Refusal {
	key := in.header.Get("Idempotency-Key")
	if key == "" {
		return nil
	}
	sum := sha256.Sum256(in.body)
	s.mu.Lock()
	defer s.mu.Unlock()
	if was, ok := s.keys[key]; ok && was != sum {
		return &Refusal{Status: 400, Type: "idempotency_error", Message: fmt.Sprintf("Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '%s' if you meant to execute a different request.", key)}
	}
	s.keys[key] = sum
	return nil
}

// compose turns a task into the answer that is sent.
func (s *Server) compose(p Prompt, t task, seam Seam) Answer {
	a := t.rest
	if t.c.Manner == Resumed { // the limits count on from the beginning (WIRE 2.2)
		whole := limit(stopAt(t.whole, p.Stops), p.MaxTokens, s.cfg.Seed)
		if a, ok := Rest(whole, t.c.Said); ok {
			return a
		}
		return Answer{Finish: whole.Finish}
	}
	if t.c.Manner != Fresh {
		c := t.c
		if s.cfg.IgnoreAnchor {
			c.Anchor = ""
		}
		j := join{whole: t.whole, rest: t.rest, c: c, tools: p.Tools}
		if len(p.Schema) > 0 && seam.Name == "" {
			seam.Name = "schema-restart" // the grammar starts over (WIRE 2.3)
		}
		a = seam.apply(j)
	}
	return limit(stopAt(a, p.Stops), p.MaxTokens, s.cfg.Seed)
}

// refuse answers a refusal.
func (s *Server) refuse(id int, d Dialect, r *Refusal, w wire) Ending {
	rid := "req_" + label(s.cfg.Seed, fmt.Sprint(id))
	s.log.update(id, func(x *Exchange) { x.Refusal, x.Status = r, r.Status })
	return replied(w, Reply{Status: r.Status, Header: r.head(d), Body: r.body(d, rid)}, rid, Refused)
}

// whole sends a whole JSON response.
func whole(w wire, status int, requestID string, body []byte, how Ending) Ending {
	return replied(w, Reply{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}, requestID, how)
}

// replied sends r, whose header it may change.
func replied(w wire, r Reply, requestID string, how Ending) Ending {
	identify(r.Header, requestID)
	r.Header.Set("Content-Length", fmt.Sprint(len(r.Body)))
	if w.head(r.Status, r.Header) != nil || w.write(r.Body) != nil {
		return ClientClosed
	}
	w.end(Step{End: EndPolite})
	return how
}

// identify sets the id of a response under every name that a provider has for it.
func identify(h http.Header, requestID string) {
	for _, name := range []string{"Request-Id", "X-Request-Id", "X-Amzn-Requestid"} {
		h.Set(name, requestID)
	}
}

// send performs the response.
func (s *Server) send(id int, p Prompt, t task, a Answer, tr Treatment, w wire) Ending {
	variant := s.cfg.Variant
	for _, name := range tr.Variants {
		if err := variant.Set(name); err != nil {
			panic("BUG: the script parser let a variant pass: " + err.Error())
		}
	}
	if a.Usage.In == 0 {
		a.Usage.In = max(1, p.size()/4)
	}
	salt := label(s.cfg.Seed, t.key, fmt.Sprint(id))
	o := Options{Model: p.Model, ID: p.Dialect.speaker().traits().responseID + salt, Created: time.Now().Unix(), Seed: s.cfg.Seed,
		IncludeUsage: p.IncludeUsage, N: p.N, Logprobs: p.Logprobs, Variant: variant, Request: p.Body}
	if tune := p.Dialect.speaker().traits().tune; tune != nil {
		tune(&o, p, t)
	}
	framing := p.Dialect.framing(o)
	pace := s.cfg.Pace
	if tr.Pace != nil {
		pace = *tr.Pace
	}
	events, h := []Event{{KindOther, RenderWhole(p.Dialect, a, o)}}, eventStream(salt)
	if p.Stream {
		events = Render(p.Dialect, a, o)
		h.Set("Content-Type", framing.contentType())
	} else {
		h.Set("Content-Type", "application/json")
	}
	d := &drive{w: w, faults: tr.Faults, pace: pace, closed: s.closing,
		total: total(events),
		pos:   Position{Dialect: p.Dialect, Framing: framing, Model: p.Model, ID: o.ID, Total: len(events), Seed: s.cfg.Seed, Options: o}}
	if r := unmet(tr.Faults, w.transport(), framing); r != nil {
		return s.refuse(id, p.Dialect, r, w)
	}
	kept := s.shelve(p, t, a, o, pace)
	if kept != nil && kept.background && p.Stream {
		d.kept, d.pace = kept, 0
	}
	end := d.play(h, events)
	paused := slices.ContainsFunc(events, func(e Event) bool { return e.Kind == KindPause })
	if (end == Complete || d.finished && p.N <= 1) && !paused { // one finish of several is not the end
		s.turns.done(t.key)
		if kept != nil {
			s.shelf.put(kept)
		}
	}
	s.settle(id, d)
	return end
}

// eventStream are the headers of a stream.
func eventStream(salt string) http.Header {
	h := http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}, "Cache-Control": {"no-cache"}}
	identify(h, "req_"+salt)
	return h
}

// settle copies what a drive did into the log.
func (s *Server) settle(id int, d *drive) {
	s.log.update(id, func(x *Exchange) {
		x.Status, x.Applied, x.Events, x.Bytes = d.status, d.applied, d.sent, d.bytes
		x.Spoke, x.Last = d.spoke, d.last
	})
}

// total is the length of a body, before compression.
func total(events []Event) int64 {
	var n int64
	for _, e := range events {
		n += int64(len(e.Raw))
	}
	return n
}

// unmet refuses faults that cannot happen on this transport, or to this dialect.
func unmet(faults []Fault, have Transport, framing Framing) *Refusal {
	for _, f := range faults {
		if n, ok := f.(Needy); ok && n.Needs() != have {
			return &Refusal{Status: 500, Type: "api_error", Message: fmt.Sprintf("the fault script asks for something that needs %s, but this request came over %s: point the client at the other URL", n.Needs(), have)}
		}
		if n, ok := f.(Particular); ok && n.NeedsFraming() != framing {
			return &Refusal{Status: 500, Type: "api_error", Message: fmt.Sprintf("the fault script asks for something that needs %s, but this dialect has %s", n.NeedsFraming(), framing)}
		}
	}
	return nil
}

// size is the length of everything the prompt says.
func (p Prompt) size() int {
	n := len(p.System)
	for _, t := range p.Turns {
		n += len(t.Text)
		for _, r := range t.Results {
			n += len(r.Text)
		}
	}
	return n
}
