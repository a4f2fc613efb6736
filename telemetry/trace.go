package telemetry

import (
	"context"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/unbroken-llm/unbroken/proxy"
	"github.com/unbroken-llm/unbroken/relay"
)

// Traces implements [proxy.Observer]: one span per request of a client, one below it
// per attempt, events for what happens between them. docs/TELEMETRY.md lists them.
type Traces struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
}

func newTraces(o ...sdk.TracerProviderOption) *Traces {
	p := sdk.NewTracerProvider(o...)
	return &Traces{p, p.Tracer("github.com/unbroken-llm/unbroken")}
}

// Close exports what is left.
func (t *Traces) Close(ctx context.Context) error { return t.provider.Shutdown(ctx) }

// traced is one stream.
type traced struct {
	t       *Traces
	who     proxy.Subject
	ctx     context.Context // of span
	span    trace.Span
	attempt trace.Span // under way; nil: none is
	saved   int64
}

// Begin implements [proxy.Observer]. Whether a stream is sampled is its parent's to
// say, if its client sent one.
func (t *Traces) Begin(s proxy.Subject) proxy.Listener {
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": s.Trace})
	ctx, span := t.tracer.Start(ctx, spanName(s.Dialect, s.Model), trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(s.Began),
		trace.WithAttributes(
			keyOperation.String(operation(s.Dialect)), keyProvider.String(providerName(s.Dialect)), keyModel.String(s.Model),
			keyRun.String(s.Run), keyDialect.String(s.Dialect), keyUpstream.String(s.Upstream),
		))
	if !span.IsRecording() {
		return nil
	}
	return &traced{t: t, who: s, ctx: ctx, span: span}
}

// Note implements [proxy.Listener].
func (s *traced) Note(n relay.Note) {
	event := func(name string, a ...attribute.KeyValue) {
		s.span.AddEvent(name, trace.WithTimestamp(n.At), trace.WithAttributes(a...))
	}
	switch n.Kind {
	case relay.NoteAttempt:
		s.endAttempt(n.At, "")
		s.begin(n)
	case relay.NoteVisible:
		if s.attempt != nil {
			s.attempt.AddEvent(eventContent, trace.WithTimestamp(n.At))
		}
	case relay.NoteInterrupted:
		s.saved += Saved(n)
		a := []attribute.KeyValue{
			keyCause.String(n.Cause.Kind.String()), keyPlan.String(n.Plan.Kind.String()), keyReason.String(n.Plan.Reason),
			keyManner.String(n.Manner.String()), keySaved.Int64(Saved(n)),
		}
		if n.Cause.Status != 0 {
			a = append(a, keyStatus.Int(n.Cause.Status))
		}
		event(eventInterrupted, a...)
		s.endAttempt(n.At, n.Cause.Kind.String())
	case relay.NoteSeam:
		event(eventSeam, keySeam.String(n.Reason), keyJoined.Bool(n.Joined), keyManner.String(n.Manner.String()), keySkipped.Int(n.Skipped), keyHeld.Int(n.Held))
	case relay.NoteHealed:
		event(eventHealed, keyGap.Float64(n.Gap.Seconds()))
	case relay.NoteDemoted:
		event(eventDemoted, keyManner.String(n.Manner.String()))
	case relay.NoteUnprotected:
		event(eventUnprotected, keyReason.String(n.Reason))
	case relay.NoteEnd:
		s.endAttempt(n.At, "")
	}
}

// begin opens the span of an attempt.
func (s *traced) begin(n relay.Note) {
	to := proxy.Asked{Upstream: s.who.Upstream, Model: s.who.Model}
	if n.Target < len(s.who.Targets) {
		to = s.who.Targets[n.Target]
	}
	_, s.attempt = s.t.tracer.Start(s.ctx, spanName(s.who.Dialect, to.Model), trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(n.At),
		trace.WithAttributes(
			keyOperation.String(operation(s.who.Dialect)), keyProvider.String(providerName(s.who.Dialect)), keyModel.String(to.Model),
			keyUpstream.String(to.Upstream), keyAttempt.Int(n.Attempt), keyManner.String(n.Manner.String()),
		))
}

// endAttempt closes the span of the attempt under way; cause is empty if it did well.
func (s *traced) endAttempt(at time.Time, cause string) {
	if s.attempt == nil {
		return
	}
	if cause != "" {
		s.attempt.SetAttributes(keyError.String(cause))
		s.attempt.SetStatus(codes.Error, cause)
	}
	s.attempt.End(trace.WithTimestamp(at))
	s.attempt = nil
}

// End implements [proxy.Listener].
func (s *traced) End(o proxy.Outcome) {
	s.endAttempt(o.At, "")
	sum := &o.Summary
	s.span.SetAttributes(
		keyOutcome.String(o.Token), keyWhose.String(o.Whose.String()), keyAttempts.Int(sum.Attempts), keyRecoveries.Int(sum.Recoveries),
		keyRepaid.Int64(sum.Repaid), keySaved.Int64(s.saved), keyEvents.Int64(sum.Events), keyIn.Int64(sum.BytesIn), keyOut.Int64(sum.BytesOut),
		keyBeats.Int(sum.Heartbeats),
	)
	if sum.Status != 0 {
		s.span.SetAttributes(keyStatus.Int(sum.Status))
	}
	if sum.Usage.Known {
		s.span.SetAttributes(keyInput.Int64(sum.Usage.Input), keyOutput.Int64(sum.Usage.Output))
	}
	if o.Whose == proxy.Provider || o.Whose == proxy.Us {
		word, _, _ := strings.Cut(o.Token, ":")
		s.span.SetAttributes(keyError.String(word))
		s.span.SetStatus(codes.Error, o.Token)
	}
	s.span.End(trace.WithTimestamp(o.At))
}
