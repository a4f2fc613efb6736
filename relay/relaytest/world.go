package relaytest

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/turn"
)

// Request is one attempt as the provider sees it.
type Request struct {
	N int
	// Method, Below and Query are those of an errand about a held generation;
	// empty: the client's own.
	Method, Below, Query string

	Body    []byte
	Derived bool
	Target  int
	At      time.Time
}

// Reply is what a provider does with one attempt.
type Reply struct {
	// Fail ends the attempt before a response head.
	Fail   *interrupt.Ended
	Status int // 0: 200
	Header map[string]string
	Chunks [][]byte
	// End ends the body, unless Hang: then the provider stays silent, or
	// repeats Pings.
	End   interrupt.Ended
	Hang  bool
	Pings []byte
	Every time.Duration
}

// Get reads a header field.
func (r Reply) Get(name string) string {
	for k, v := range r.Header {
		if strings.EqualFold(k, name) {
			return v
		}
	}
	return ""
}

// Provider answers attempts.
type Provider func(Request) Reply

// Result is what the client got.
type Result struct {
	Head     *relay.Head
	Body     []byte
	End      relay.End
	Notes    []relay.Note
	Requests []Request
	// Abandoned are the errands that nobody waits for.
	Abandoned []Request
	// Memo is what was to be remembered of the turn.
	Memo *relay.Memo
	// Turn is what was to be told to the ledger, nil: nothing. Again: as one that had
	// ended before.
	Turn  *turn.Snapshot
	Again bool
	// Log is the checkpoint as appended.
	Log []byte
	// Took is the virtual time from request to end.
	Took time.Duration
	// Broken names the first violated law; "" if all held.
	Broken string
}

// Outcome is the reason of the end note.
func (r Result) Outcome() string {
	for _, n := range r.Notes {
		if n.Kind == relay.NoteEnd {
			return n.Reason
		}
	}
	return ""
}

// Plans lists the plans that were made, with their reasons.
func (r Result) Plans() []string {
	var out []string
	for _, n := range r.Notes {
		if n.Kind == relay.NoteInterrupted {
			out = append(out, n.Plan.Kind.String()+"("+n.Plan.Reason+")")
		}
	}
	return out
}

// World runs streams.
type World struct {
	Config  relay.Config
	Dialect dialect.Dialect
	// Limit bounds virtual time; 0: 6 h.
	Limit time.Duration
	// LeaveAfter makes the client leave after so many bytes; 0: it stays.
	LeaveAfter int
}

// Run sends one request through a stream.
func (w World) Run(body []byte, p Provider) (Result, error) {
	req, err := w.Dialect.Parse(body)
	if err != nil {
		return Result{}, err
	}
	return w.RunAs(req, body, p)
}

// RunAs is Run for a request of which something else goes up first.
func (w World) RunAs(req *dialect.Request, body []byte, p Provider) (Result, error) {
	s, fx := relay.New(w.Config, w.Dialect, req, body, epoch)
	return w.drive(s, fx, body, p, false, nil)
}

var epoch = time.Unix(1_800_000_000, 0)

// Kill runs a request until the provider has nothing more to say, and stops there,
// as a process that is killed does. What the result's Log lacks was never flushed.
func (w World) Kill(body []byte, p Provider) (Result, error) {
	req, err := w.Dialect.Parse(body)
	if err != nil {
		return Result{}, err
	}
	s, fx := relay.New(w.Config, w.Dialect, req, body, epoch)
	return w.drive(s, fx, body, p, true, nil)
}

// Resume carries a turn on from its checkpoint, for a new client that sends the
// same request.
func (w World) Resume(body, log []byte, p Provider) (Result, error) {
	req, err := w.Dialect.Parse(body)
	if err != nil {
		return Result{}, err
	}
	s, fx, err := relay.Resume(w.Config, w.Dialect, req, log, epoch)
	if err != nil {
		return Result{}, err
	}
	return w.drive(s, fx, body, p, false, log)
}

func (w World) drive(s *relay.Stream, fx *relay.Effects, body []byte, p Provider, kill bool, log []byte) (Result, error) {
	r := run{w: w, p: p, first: body, start: epoch}
	r.res.Log = append(r.res.Log, log...)
	return w.driveFrom(r, s, fx, kill)
}

func (w World) driveFrom(r run, s *relay.Stream, fx *relay.Effects, kill bool) (Result, error) {
	now, start := r.start, r.start
	r.perform(fx, now)
	limit := w.Limit
	if limit == 0 {
		limit = 6 * time.Hour
	}
	for steps := 0; !s.Done(); steps++ {
		if now.Sub(start) > limit {
			return r.res, fmt.Errorf("stream still open after %v: attempt %d, outcome so far %v", limit, s.Attempt(), r.res.Plans())
		}
		if steps > 5_000_000 {
			return r.res, fmt.Errorf("stream does not come to an end")
		}
		in, at := r.next(s, now)
		if _, silent := in.(relay.Tick); kill && silent {
			return r.res, nil
		}
		if at.After(now) {
			now = at
		}
		r.perform(s.Step(now, in), now)
		if w.LeaveAfter > 0 && len(r.res.Body) >= w.LeaveAfter && !s.Done() {
			r.perform(s.Step(now, relay.Gone{}), now)
		}
	}
	r.res.Took = now.Sub(start)
	if r.res.End == relay.Open {
		r.law("the stream ended without saying how")
	}
	return r.res, nil
}

type run struct {
	w     World
	p     Provider
	first []byte
	start time.Time
	res   Result

	n      int // current attempt, 0: none
	reply  Reply
	opened bool
	chunk  int
	lent   []byte // the last chunk
	ended  bool
	pinged time.Time
	scan   dialect.Scanner // of what the client got
	half   int             // bytes of an unfinished unit of it
}

func (r *run) law(format string, a ...any) {
	if r.res.Broken == "" {
		r.res.Broken = fmt.Sprintf(format, a...)
	}
}

// next is what happens next: what the current attempt has to say, else time.
func (r *run) next(s *relay.Stream, now time.Time) (relay.Input, time.Time) {
	for i := range r.lent {
		r.lent[i] = '#'
	}
	r.lent = nil
	switch {
	case r.n == 0 || r.ended:
	case r.reply.Fail != nil:
		r.ended = true
		return relay.Ended{Attempt: r.n, End: *r.reply.Fail}, now
	case !r.opened:
		r.opened = true
		status := r.reply.Status
		if status == 0 {
			status = 200
		}
		return relay.Opened{Attempt: r.n, Status: status, Header: r.reply}, now.Add(time.Millisecond)
	case r.chunk < len(r.reply.Chunks):
		c := r.reply.Chunks[r.chunk]
		r.chunk++
		// The machine may not keep what it is given: hand out a copy that
		// is spoilt before the next step.
		r.lent = bytes.Clone(c)
		return relay.Chunk{Attempt: r.n, Bytes: r.lent}, now.Add(time.Millisecond)
	case !r.reply.Hang:
		r.ended = true
		return relay.Ended{Attempt: r.n, End: r.reply.End}, now.Add(time.Millisecond)
	case r.reply.Pings != nil:
		d := s.Deadline()
		if r.pinged.IsZero() {
			r.pinged = now
		}
		if at := r.pinged.Add(r.reply.Every); d.IsZero() || at.Before(d) {
			r.pinged = at
			return relay.Chunk{Attempt: r.n, Bytes: r.reply.Pings}, at
		}
	}
	d := s.Deadline()
	if d.IsZero() {
		d = now.Add(time.Hour)
	}
	return relay.Tick{}, d
}

func (r *run) perform(fx *relay.Effects, now time.Time) {
	if r.res.End != relay.Open && (len(fx.Client) > 0 || fx.Head != nil || fx.Open != nil || fx.End != relay.Open) {
		r.law("effects after the end")
	}
	if fx.Memo != nil {
		r.res.Memo = fx.Memo
	}
	if fx.Turn != nil {
		if r.res.Turn != nil {
			r.law("a turn was told twice")
		}
		r.res.Turn, r.res.Again = fx.Turn.Clone(), fx.Again
	}
	if p := fx.Persist; len(p.Log) > 0 {
		if p.Offset != int64(len(r.res.Log)) {
			r.law("checkpoint offset %d, want %d", p.Offset, len(r.res.Log))
		}
		r.res.Log = append(r.res.Log, p.Log...)
	}
	if fx.Head != nil {
		if r.res.Head != nil {
			r.law("two response heads")
		}
		h := *fx.Head
		r.res.Head = &h
	}
	if len(fx.Client) > 0 {
		if r.res.Head == nil {
			r.law("bytes before the response head")
		}
		if r.res.Head != nil && r.res.Head.Stream {
			r.wholeEvents(fx.Client, fx.End == relay.Abort)
		}
		r.res.Body = append(r.res.Body, fx.Client...)
	}
	if fx.Cancel {
		r.n = 0
	}
	if a := fx.Abandon; a != nil {
		r.res.Abandoned = append(r.res.Abandoned, Request{N: a.N, Method: a.Method, Below: a.Below, Query: a.Query, Target: a.Target, At: now})
	}
	if fx.Open != nil {
		if r.n != 0 {
			r.law("an attempt was opened while another is open")
		}
		body := fx.Open.Body
		if body == nil && fx.Open.Method == "" {
			body = r.first
		}
		q := Request{N: fx.Open.N, Body: bytes.Clone(body), Derived: fx.Open.Derived, Target: fx.Open.Target, At: now}
		q.Method, q.Below, q.Query = fx.Open.Method, fx.Open.Below, fx.Open.Query
		r.res.Requests = append(r.res.Requests, q)
		r.n, r.opened, r.ended, r.chunk, r.pinged = q.N, false, false, 0, time.Time{}
		r.reply = r.p(q)
	}
	if fx.End != relay.Open {
		r.res.End = fx.End
	}
	r.res.Notes = append(r.res.Notes, fx.Notes...)
}

// wholeEvents checks the one-writer law: every write is whole units, or a drip, or
// behind drips the rest of a unit and whole ones.
func (r *run) wholeEvents(b []byte, aborted bool) {
	if r.scan == nil {
		r.scan = dialect.NewScanner(r.w.Dialect, 0)
	}
	r.scan.Push(b)
	r.half += len(b)
	for e, ok := r.scan.Next(); ok; e, ok = r.scan.Next() {
		r.half -= len(e.Raw)
	}
	if r.half == 0 {
		return
	}
	rest, _ := r.scan.Rest()
	if _, drips := r.w.Dialect.(dialect.Dripper); drips && !aborted {
		switch string(bytes.TrimSpace(rest.Raw)) {
		case "", "[", "data:":
			return
		}
	}
	r.law("a write ends inside an event (%d bytes): %q", r.half, tail(b, 200))
}

func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// Fold decodes what the client got into a message.
func Fold(d dialect.Dialect, req *dialect.Request, stream []byte) (*turn.Snapshot, []turn.WireFault, error) {
	sc, half := dialect.NewScanner(d, 0), len(stream)
	dec := d.NewDecoder(req)
	s := &turn.Snapshot{}
	var faults []turn.WireFault
	sc.Push(stream)
	for {
		e, ok := sc.Next()
		if !ok {
			break
		}
		if half -= len(e.Raw); e.Data == nil {
			continue
		}
		ds, err := dec.Decode(nil, e)
		if err != nil {
			return s, faults, err
		}
		for _, x := range ds {
			if x.Kind == turn.Fault {
				faults = append(faults, *x.Fault)
			}
			if err := s.Fold(x); err != nil {
				return s, faults, fmt.Errorf("%w in %q", err, e.Data)
			}
		}
	}
	if rest, ok := sc.Rest(); half > 0 && (!ok || len(bytes.TrimSpace(rest.Raw)) > 0) {
		return s, faults, fmt.Errorf("%d bytes of half an event", half)
	}
	return s, faults, nil
}
