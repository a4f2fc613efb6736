package dialecttest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Case is one whole turn of a dialect.
type Case struct {
	Name    string
	Request []byte
	Stream  []byte // the provider's bytes
	// ID is the message id as it stands in Stream. When set, the battery plays
	// a later attempt under another id and checks that it never shows.
	ID string
	// Frame appends an event in the framing of a [dialect.Framed]; nil: as
	// [sse.Append] does.
	Frame func(dst []byte, name string, data []byte) []byte
}

// frame appends an event in the case's framing.
func (c *Case) frame(dst []byte, name string, data []byte) []byte {
	if c.Frame == nil {
		return sse.Append(dst, name, data)
	}
	return c.Frame(dst, name, data)
}

// Units returns the units of an event stream, the unfinished rest included. They
// own their bytes.
func Units(stream []byte) []sse.Event { return units(&sse.Scanner{}, stream) }

// UnitsOf is Units in the framing of d.
func UnitsOf(d dialect.Dialect, stream []byte) []sse.Event {
	return units(dialect.NewScanner(d, 0), stream)
}

func units(s dialect.Scanner, stream []byte) (out []sse.Event) {
	s.Push(stream)
	for e, ok := s.Next(); ok; e, ok = s.Next() {
		out = append(out, own(e))
	}
	if e, ok := s.Rest(); ok {
		out = append(out, own(e))
	}
	return out
}

func own(e sse.Event) sse.Event {
	return sse.Event{Name: bytes.Clone(e.Name), Data: bytes.Clone(e.Data), Raw: bytes.Clone(e.Raw)}
}

// Decode returns the deltas of each unit, decoded by one fresh decoder.
func Decode(d dialect.Dialect, req *dialect.Request, units []sse.Event) ([][]turn.Delta, error) {
	dec := d.NewDecoder(req)
	out := make([][]turn.Delta, len(units))
	for i, e := range units {
		ds, err := dec.Decode(nil, e)
		if err != nil {
			return out, fmt.Errorf("unit %d: %w", i, err)
		}
		out[i] = ds
	}
	return out, nil
}

// Fold folds deltas into a new snapshot.
func Fold(deltas [][]turn.Delta) (*turn.Snapshot, error) {
	s := new(turn.Snapshot)
	return s, foldInto(s, deltas)
}

func foldInto(s *turn.Snapshot, deltas [][]turn.Delta) error {
	for i, ds := range deltas {
		for _, d := range ds {
			if err := s.Fold(d); err != nil {
				return fmt.Errorf("unit %d, %s: %w", i, d.Kind, err)
			}
		}
	}
	return nil
}

// Read decodes and folds a whole stream, failing the test on any error.
func Read(t testing.TB, d dialect.Dialect, req *dialect.Request, stream []byte) *turn.Snapshot {
	t.Helper()
	deltas, err := Decode(d, req, UnitsOf(d, stream))
	if err != nil {
		t.Fatalf("decode: %v\n%s", err, stream)
	}
	s, err := Fold(deltas)
	if err != nil {
		t.Fatalf("fold: %v\n%s", err, stream)
	}
	return s
}

// Parse parses a request, failing the test on an error.
func Parse(t testing.TB, d dialect.Dialect, body []byte) *dialect.Request {
	t.Helper()
	req, err := d.Parse(body)
	if err != nil {
		t.Fatalf("parse request: %v", err)
	}
	return req
}
