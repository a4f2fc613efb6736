package bedrock

import (
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/eventstream"
	"github.com/unbroken-llm/unbroken/turn"
)

// Converse is the dialect of ConverseStream. It holds nothing; the zero value is ready and may be shared.
type Converse struct{}

var _ dialect.Framed = Converse{}

// Name returns "bedrock-converse".
func (Converse) Name() string { return "bedrock-converse" }

// Traits are the protocol's facts. The usage rides on the last frame, metadata, behind the finish.
func (Converse) Traits() dialect.Traits {
	return dialect.Traits{SignedReasoning: true, LateUsage: true, Marker: true}
}

// NewScanner implements [dialect.Framed].
func (Converse) NewScanner(limit int) dialect.Scanner { return &eventstream.Scanner{Limit: limit} }

// ContentType implements [dialect.Framed].
func (Converse) ContentType() string { return contentType }

// ParseAt is Parse for a request whose path is known.
func (d Converse) ParseAt(path string, body []byte) (*dialect.Request, error) {
	return parseAt(d, path, body)
}

func parseAt(d dialect.Dialect, path string, body []byte) (*dialect.Request, error) {
	r, err := d.Parse(body)
	if err != nil {
		return nil, err
	}
	c := ReadPath(path)
	r.Model, r.Stream = c.Model, c.Streams()
	return r, nil
}

// Heartbeat implements [dialect.Writer], see keepAlive.
func (Converse) Heartbeat(dst []byte, _ *dialect.Request, _ *turn.Snapshot) []byte {
	return heartbeat(dst)
}

// Fail renders an exception frame. What is open stays open: no SDK takes a stream that raised for a message.
func (Converse) Fail(dst []byte, _ *turn.Snapshot, f dialect.Failure) []byte { return fail(dst, f) }

// ErrorBody implements [dialect.Writer].
func (Converse) ErrorBody(f dialect.Failure) (status int, body []byte) { return errorBody(f) }

// Retract implements [dialect.Writer]: the dialect has no mode "events".
func (Converse) Retract(dst []byte, _ *turn.Snapshot, _ int, _ string) []byte { return dst }
