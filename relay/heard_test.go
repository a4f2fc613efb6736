package relay_test

import (
	"bytes"
	"io"
	"net/http"
	"sync"

	anthropicstream "github.com/anthropics/anthropic-sdk-go/v2/packages/ssestream"
	"github.com/openai/openai-go/v3/packages/ssestream"
)

// What takes a battery its time is an official SDK that decodes, for every cut, the
// same events of the same recording. It is asked once what it makes of an event: that is
// decided by the event's bytes alone, since its streams keep nothing from one event to
// the next. Framing and accumulating are its own in every case.

// heardEvents is how many events of one type are remembered, twice at most.
const heardEvents = 1 << 11

// heard remembers what an SDK made of events.
type heard[T any] struct {
	mu         sync.Mutex
	young, old map[string]verdictOn[T]
}

type verdictOn[T any] struct {
	value T
	more  bool // the stream goes on with value
	err   error
}

// of returns what decode makes of an event, asking it once.
func (h *heard[T]) of(event string, decode func() (T, bool, error)) (T, bool, error) {
	h.mu.Lock()
	v, ok := h.young[event]
	if !ok {
		if v, ok = h.old[event]; ok {
			h.keep(event, v)
		}
	}
	h.mu.Unlock()
	if !ok {
		v.value, v.more, v.err = decode()
		h.mu.Lock()
		h.keep(event, v)
		h.mu.Unlock()
	}
	return v.value, v.more, v.err
}

// keep forgets what was not asked for during the last heardEvents others.
func (h *heard[T]) keep(event string, v verdictOn[T]) {
	if h.young == nil || len(h.young) >= heardEvents {
		h.old, h.young = h.young, make(map[string]verdictOn[T], heardEvents)
	}
	h.young[event] = v
}

// eventResponse is a response whose body is an event stream.
func eventResponse(stream []byte) *http.Response {
	return &http.Response{
		StatusCode: 200,
		Header:     http.Header{"Content-Type": {"text/event-stream"}},
		Body:       io.NopCloser(bytes.NewReader(stream)),
	}
}

// eachOpenAI is openai-go's stream: every event of it, or its error.
func eachOpenAI[T any](h *heard[T], stream []byte, each func(T) error) error {
	d := ssestream.NewDecoder(eventResponse(stream))
	for d.Next() {
		e := d.Event()
		v, more, err := h.of(e.Type+"\n"+string(e.Data), func() (T, bool, error) {
			s := ssestream.NewStream[T](&single[ssestream.Event]{event: e}, nil)
			more := s.Next()
			return s.Current(), more, s.Err()
		})
		if err != nil || !more { // [DONE] is the end to it
			return err
		}
		if err := each(v); err != nil {
			return err
		}
	}
	return d.Err()
}

// eachAnthropic is anthropic-sdk-go's stream. Its accumulator keeps and edits what
// other events than deltas hold, so that those are decoded anew.
func eachAnthropic[T any](h *heard[T], stream []byte, each func(T) error) error {
	d := anthropicstream.NewDecoder(eventResponse(stream))
	for d.Next() {
		e := d.Event()
		decode := func() (T, bool, error) {
			s := anthropicstream.NewStream[T](&single[anthropicstream.Event]{event: e}, nil)
			more := s.Next()
			return s.Current(), more, s.Err()
		}
		var v T
		var more bool
		var err error
		if e.Type == "content_block_delta" {
			v, more, err = h.of(string(e.Data), decode)
		} else {
			v, more, err = decode()
		}
		switch {
		case err != nil:
			return err
		case !more:
			continue // a ping, an event without a name
		}
		if err := each(v); err != nil {
			return err
		}
	}
	return d.Err()
}

// single is a stream of one event, as an SDK's framing hands it on.
type single[E any] struct {
	event E
	told  bool
}

func (o *single[E]) Next() bool   { was := o.told; o.told = true; return !was }
func (o *single[E]) Event() E     { return o.event }
func (o *single[E]) Close() error { return nil }
func (o *single[E]) Err() error   { return nil }
