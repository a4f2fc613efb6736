package bedrock

import (
	"encoding/base64"
	"errors"

	"github.com/unbroken-llm/unbroken/eventstream"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
)

// chunk is the event that holds one event of the model's own, as {"bytes": base64}.
const chunk = "chunk"

// ErrChunk is a chunk whose bytes cannot be read.
var ErrChunk = errors.New("malformed_chunk")

// idleBuffer is the most memory in bytes that a scanner keeps between pushes.
const idleBuffer = 64 << 10

// chunkScanner takes the model's events out of their chunks: Data is what the chunk holds, Name is nil, Raw is the frame.
// A chunk that cannot be read keeps its name and payload; all other frames are as eventstream hands them out.
type chunkScanner struct {
	eventstream.Scanner
	plain []byte // what the chunks of this push hold
}

func newChunkScanner(limit int) *chunkScanner {
	return &chunkScanner{Scanner: eventstream.Scanner{Limit: limit}}
}

// Push implements [dialect.Scanner].
func (s *chunkScanner) Push(p []byte) {
	if s.plain = s.plain[:0]; cap(s.plain) > idleBuffer {
		s.plain = nil
	}
	s.Scanner.Push(p)
}

// Next implements [dialect.Scanner].
func (s *chunkScanner) Next() (sse.Event, bool) {
	e, ok := s.Scanner.Next()
	if !ok || string(e.Name) != chunk {
		return e, ok
	}
	body, _ := jsonwalk.String(jsonwalk.Get(e.Data, "bytes"))
	from := len(s.plain)
	plain, err := base64.StdEncoding.AppendDecode(s.plain, body)
	if err != nil || len(plain) == from {
		return e, true
	}
	s.plain = plain
	e.Name, e.Data = nil, plain[from:]
	return e, true
}

// reframe puts the events of a text/event-stream into chunks.
func reframe(dst, stream []byte) []byte {
	var s sse.Scanner
	s.Push(stream)
	for e, ok := s.Next(); ok; e, ok = s.Next() {
		if e.Data != nil {
			dst = appendChunk(dst, e.Data)
		}
	}
	return dst
}

func appendChunk(dst, data []byte) []byte {
	payload := base64.StdEncoding.AppendEncode([]byte(`{"bytes":"`), data)
	return event(dst, chunk, append(payload, `"}`...))
}
