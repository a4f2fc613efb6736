package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/turn"
)

// tale is one stream, as its log line tells it.
type tale struct {
	began   time.Time
	outcome string
	end     relay.End
	sum     relay.Summary
	causes  []string
	detail  string // what the transport last said
	target  string // the last one
	blame   interrupt.Blame
	reasons []string
	raw     bool // the provider's body passes unread
}

func (t *tale) begin(now time.Time) { t.began, t.outcome, t.end = now, "unfinished", relay.Abort }

// observe passes the notes of a step on.
func (d *drive) observe() {
	if a := d.fx.Abandon; a != nil && !d.req.finish {
		l := &d.legs[a.Target]
		d.srv.abandon(d.req.under.client, &l.to.target, d.errand(l, a))
	}
	for _, n := range d.fx.Notes {
		switch n.Kind {
		case relay.NoteInterrupted:
			d.hear(verdictOn(n.Cause))
			if len(d.tale.causes) < checkpoint.MaxCauses {
				d.tale.causes = append(d.tale.causes, n.Cause.Kind.String())
				d.tale.reasons = append(d.tale.reasons, n.Plan.Reason)
			}
			switch n.Cause.Kind {
			case interrupt.OpenFailed, interrupt.ConnectionReset, interrupt.GoAway:
				// The transport's own words hold no credential; a provider's
				// might quote the turn.
				d.tale.detail = n.Cause.Message
			default:
			}
		case relay.NoteDemoted:
			if n.Manner == turn.Provider {
				d.req.asks.Veiled = false
			}
			d.srv.abilities.demote(d.legs[n.Target].to, d.req.speaks.Name(), d.legs[n.Target].model, n.Manner)
		case relay.NoteVisible:
			d.hear(good)
		case relay.NoteEnd:
			d.tale.outcome, d.tale.end, d.tale.sum = n.Reason, n.End, n.Summary
			d.tale.blame = n.Cause.Blame()
			if d.tale.completed() {
				d.hear(good)
			}
		case relay.NoteUnprotected:
			if n.Reason == relay.StreamRefused {
				d.unstream(n.Target)
			} else {
				d.tale.raw = true
			}
		case relay.NoteAttempt, relay.NoteSeam, relay.NoteHealed:
		}
		if d.heard != nil {
			d.heard.Note(n)
		}
	}
}

// tell writes the stream's line. Neither credentials nor the query string nor a
// word of the turn are in it (FIELD-REPORTS F24).
func (t *tale) tell(l *slog.Logger, r *request) {
	if !l.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	l.LogAttrs(context.Background(), slog.LevelInfo, "stream",
		slog.String("run", string(r.run)),
		slog.String("outcome", t.outcome),
		slog.String("upstream", t.target),
		slog.String("dialect", r.speaks.Name()),
		slog.String("model", clip(r.asks.Model)),
		slog.Int("status", t.sum.Status),
		slog.Int("attempts", t.sum.Attempts),
		slog.Int("recoveries", t.sum.Recoveries),
		slog.Int64("repaid", t.sum.Repaid),
		slog.Any("causes", t.causes),
		slog.Any("reasons", t.reasons),
		slog.String("detail", t.detail[:min(len(t.detail), maxDetail)]),
		slog.Int64("events", t.sum.Events),
		slog.Int64("bytes_in", t.sum.BytesIn),
		slog.Int64("bytes_out", t.sum.BytesOut),
		slog.Int("heartbeats", t.sum.Heartbeats),
		slog.Duration("took", time.Since(t.began)),
	)
}

// completed reports whether the client has a whole answer.
func (t *tale) completed() bool {
	return t.end == relay.Clean && !strings.HasPrefix(t.outcome, "refused:") && !strings.HasPrefix(t.outcome, "failed:")
}

// unanswered reports whether the client has no end of the turn, and nobody else will.
func (t *tale) unanswered() bool {
	switch t.outcome {
	case reasonFenced, outcomeBug, "failed:" + reasonFenced, "failed:" + reasonDraining:
		return false // another connection carries the turn on, or may
	case "client_gone", "slow_reader":
		return !t.raw
	}
	return !t.raw && (strings.HasPrefix(t.outcome, "refused:") || strings.HasPrefix(t.outcome, "failed:"))
}

// whose tells whose doing the end was.
func (t *tale) whose() Whose {
	switch {
	case t.completed():
		return Completed
	case t.outcome == "client_gone", t.outcome == "slow_reader":
		return Client
	case t.outcome == outcomeBug, t.outcome == reasonFenced, t.blame == interrupt.Us:
		return Us
	case t.blame == interrupt.Client:
		return Client
	case t.blame == interrupt.Request:
		return Request
	}
	return Provider
}

// count adds the stream to whose doing its end was.
func (c *counts) count(w Whose) {
	[...]*atomic.Int64{&c.completed, &c.client, &c.us, &c.provider, &c.request}[w].Add(1)
}

func (t *tale) panicked(l *slog.Logger, r *request, what any) {
	t.outcome, t.end = outcomeBug, relay.Abort
	l.Error("BUG: a stream panicked", "run", string(r.run), "upstream", r.to.Name,
		"panic", fmt.Sprint(what), "stack", string(debug.Stack()))
}

// maxDetail bounds the transport's words in a log, in bytes; what it says of a
// certificate, with names and a hint, is longer than other failures.
const maxDetail = 512

// clip bounds what a client controls before it gets into a log.
func clip(s string) string { return s[:min(len(s), 128)] }

// bridge gives fasthttp's complaints about connections to the log, at a level for
// those who look for them: they are the clients' doing. An error of its parser
// quotes what it could not parse, credentials included, so of those only the
// type is told.
type bridge struct{ l *slog.Logger }

func (b bridge) Printf(_ string, args ...any) {
	for _, a := range args {
		err, ok := a.(error)
		if !ok {
			continue
		}
		var ne net.Error
		if errors.As(err, &ne) || errors.Is(err, errAborted) {
			b.l.Debug("connection ended", "error", err.Error())
		} else {
			b.l.Debug("connection ended", "error_type", fmt.Sprintf("%T", err))
		}
	}
}
