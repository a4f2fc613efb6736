package completions

import (
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/openaichat"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Dialect is the legacy completions. It holds no state.
type Dialect struct{}

var _ dialect.Dialect = Dialect{}

var (
	_ dialect.Upgrader = Dialect{}
	_ dialect.Unfolder = Dialect{}
)

var wire = openaichat.Wire{Texts: true}

// Name implements dialect.Dialect.
func (Dialect) Name() string { return "completions" }

// Traits implements dialect.Dialect.
func (Dialect) Traits() dialect.Traits {
	return dialect.Traits{IndexCallsOnly: true, LateUsage: true, Marker: true, Appends: true}
}

// Repair returns body: a request has no history.
func (Dialect) Repair(body []byte) []byte { return body }

// NewDecoder implements dialect.Dialect.
func (Dialect) NewDecoder(r *dialect.Request) dialect.Decoder { return wire.NewDecoder(r) }

// Rewrite implements dialect.Writer.
func (Dialect) Rewrite(dst []byte, r *dialect.Request, e sse.Event, ds []turn.Delta, said *turn.Snapshot) []byte {
	return wire.Rewrite(dst, r, e, ds, said)
}

// Emit implements dialect.Writer.
func (Dialect) Emit(dst []byte, r *dialect.Request, said *turn.Snapshot, n int) []byte {
	return wire.Emit(dst, r, said, n)
}

// Replay implements dialect.Writer.
func (Dialect) Replay(dst []byte, r *dialect.Request, said *turn.Snapshot) []byte {
	return wire.Replay(dst, r, said)
}

// Finish implements dialect.Writer.
func (Dialect) Finish(dst []byte, r *dialect.Request, said *turn.Snapshot, e dialect.Ending) []byte {
	return wire.Finish(dst, r, said, e)
}

// Fail implements dialect.Writer.
func (Dialect) Fail(dst []byte, said *turn.Snapshot, f dialect.Failure) []byte {
	return wire.Fail(dst, said, f)
}

// ErrorBody implements dialect.Writer.
func (Dialect) ErrorBody(f dialect.Failure) (status int, body []byte) { return wire.ErrorBody(f) }

// Heartbeat implements dialect.Writer.
func (Dialect) Heartbeat(dst []byte, r *dialect.Request, said *turn.Snapshot) []byte {
	return wire.Heartbeat(dst, r, said)
}

// CloseBlock implements dialect.Writer: texts are not closed on the wire.
func (Dialect) CloseBlock(dst []byte, _ *turn.Snapshot, _ int) []byte { return dst }

// DropReasoning implements dialect.Writer: there is none.
func (Dialect) DropReasoning(dst []byte, _ *turn.Snapshot, _ int) []byte { return dst }

// Retract implements dialect.Writer: nothing can be retracted in a dialect without
// mode events.
func (Dialect) Retract(dst []byte, _ *turn.Snapshot, _ int, _ string) []byte { return dst }

// Upgrade implements dialect.Upgrader.
func (Dialect) Upgrade(r *dialect.Request, body []byte) (stream []byte, why string) {
	return wire.Upgrade(r, body)
}

// StreamPath implements dialect.Upgrader: the body says it.
func (Dialect) StreamPath(path string) string { return path }

// NewFold implements dialect.Upgrader.
func (Dialect) NewFold() dialect.Fold { return wire.NewFold() }

// Unfold implements dialect.Unfolder.
func (Dialect) Unfold(answer []byte) []sse.Event { return wire.Unfold(answer) }
