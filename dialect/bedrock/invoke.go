package bedrock

import (
	"errors"
	"strconv"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/anthropic"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// ErrModel is why a request is relayed unprotected that is not Anthropic's: every other family has a wire of its own
// behind this operation. Converse protects all of them.
var ErrModel = errors.New("invoke request: no anthropic_version; only Anthropic's models are protected here, all are through Converse")

// Invoke is the dialect of InvokeModelWithResponseStream for Anthropic's models: Messages in `chunk` frames. Repair and
// Continue are those of Messages as they are; its requests differ only in having neither model nor stream, which stand in
// the path. It holds nothing; the zero value is ready and may be shared.
type Invoke struct{ anthropic.Dialect }

var _ dialect.Framed = Invoke{}

// Name returns "bedrock-invoke".
func (Invoke) Name() string { return "bedrock-invoke" }

// Traits are those of Messages, without the mode "events": readers of chunks know no events of ours.
func (d Invoke) Traits() dialect.Traits {
	t := d.Dialect.Traits()
	t.EventsMode = false
	return t
}

// NewScanner implements [dialect.Framed].
func (Invoke) NewScanner(limit int) dialect.Scanner { return newChunkScanner(limit) }

// ContentType implements [dialect.Framed].
func (Invoke) ContentType() string { return contentType }

// Parse implements [dialect.Dialect]. Model and Stream stand in the path, see ParseAt; here the request counts as one
// that streams.
func (Invoke) Parse(body []byte) (*dialect.Request, error) {
	r, err := anthropic.Read(body)
	if err != nil {
		return nil, err
	}
	if jsonwalk.Get(body, "anthropic_version") == nil {
		return nil, ErrModel
	}
	r.Stream = true
	return r, nil
}

// ParseAt is Parse for a request whose path is known.
func (d Invoke) ParseAt(path string, body []byte) (*dialect.Request, error) {
	return parseAt(d, path, body)
}

// NewDecoder returns a decoder for one attempt.
func (d Invoke) NewDecoder(r *dialect.Request) dialect.Decoder {
	return &chunkDecoder{d.Dialect.NewDecoder(r)}
}

// chunkDecoder reads what is no chunk; what is one, the decoder of Messages reads.
type chunkDecoder struct{ dialect.Decoder }

// Decode implements [dialect.Decoder].
func (d *chunkDecoder) Decode(dst []turn.Delta, e sse.Event) ([]turn.Delta, error) {
	switch string(e.Name) {
	case "":
		return d.Decoder.Decode(dst, e)
	case chunk:
		return dst, ErrChunk
	case keepAlive:
		return append(dst, turn.Delta{Kind: turn.Pulse}), nil
	}
	if f, ok := faultOf(e); ok {
		return append(dst, turn.Delta{Kind: turn.Fault, Fault: f, Raw: e.Data}), nil
	}
	return append(dst, turn.Delta{Kind: turn.Opaque, Block: -1, Raw: e.Data}), nil
}

// metrics is the member that Bedrock adds to the last event.
const metrics = "amazon-bedrock-invocationMetrics"

// Rewrite implements [dialect.Writer]. The metrics' token counts become the whole turn's; latencies are left as they
// are, those of the last invocation.
func (d Invoke) Rewrite(dst []byte, r *dialect.Request, e sse.Event, ds []turn.Delta, said *turn.Snapshot) []byte {
	if len(e.Name) > 0 {
		for i := range ds {
			if k := ds[i].Kind; k == turn.Opaque || k == turn.Pulse || k == turn.Fault {
				return append(dst, e.Raw...)
			}
		}
		return dst
	}
	if m := jsonwalk.Get(e.Data, metrics); m != nil && said.Usage.Known {
		for _, n := range [...]struct {
			key string
			n   int64
		}{{"inputTokenCount", said.Usage.Input}, {"outputTokenCount", said.Usage.Output}} {
			if jsonwalk.Get(m, n.key) != nil {
				m = jsonwalk.SetMember(nil, m, n.key, strconv.AppendInt(nil, n.n, 10))
			}
		}
		e.Data = jsonwalk.SetMember(nil, e.Data, metrics, m)
	}
	return reframe(dst, d.Dialect.Rewrite(nil, r, e, ds, said))
}

// Emit implements [dialect.Writer].
func (d Invoke) Emit(dst []byte, r *dialect.Request, said *turn.Snapshot, n int) []byte {
	return reframe(dst, d.Dialect.Emit(nil, r, said, n))
}

// Replay implements [dialect.Writer].
func (d Invoke) Replay(dst []byte, r *dialect.Request, said *turn.Snapshot) []byte {
	return reframe(dst, d.Dialect.Replay(nil, r, said))
}

// CloseBlock implements [dialect.Writer].
func (d Invoke) CloseBlock(dst []byte, said *turn.Snapshot, n int) []byte {
	return reframe(dst, d.Dialect.CloseBlock(nil, said, n))
}

// DropReasoning implements [dialect.Writer].
func (d Invoke) DropReasoning(dst []byte, said *turn.Snapshot, n int) []byte {
	return reframe(dst, d.Dialect.DropReasoning(nil, said, n))
}

// Finish implements [dialect.Writer]. The last event has no metrics: nobody measured this end.
func (d Invoke) Finish(dst []byte, r *dialect.Request, said *turn.Snapshot, e dialect.Ending) []byte {
	return reframe(dst, d.Dialect.Finish(nil, r, said, e))
}

// Fail renders an exception frame: readers of chunks do not raise on an error event inside of one.
func (Invoke) Fail(dst []byte, _ *turn.Snapshot, f dialect.Failure) []byte { return fail(dst, f) }

// ErrorBody implements [dialect.Writer].
func (Invoke) ErrorBody(f dialect.Failure) (status int, body []byte) { return errorBody(f) }

// Heartbeat implements [dialect.Writer], see keepAlive.
func (Invoke) Heartbeat(dst []byte, _ *dialect.Request, _ *turn.Snapshot) []byte {
	return heartbeat(dst)
}

// Retract implements [dialect.Writer]: the dialect has no mode "events".
func (Invoke) Retract(dst []byte, _ *turn.Snapshot, _ int, _ string) []byte { return dst }
