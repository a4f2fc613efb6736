package redisstore

import (
	"fmt"
	"strconv"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// reply is the answer of a script; see scripts.go.
type reply []any

func (r reply) outcome() outcome {
	if len(r) > 0 {
		if n, ok := r[0].(int64); ok {
			return outcome(n)
		}
	}
	return corrupt
}

func (r reply) size() int64 {
	if len(r) > 1 {
		n, _ := r[1].(int64)
		return n
	}
	return 0
}

func (r reply) text(i int) string {
	if i < len(r) {
		s, _ := r[i].(string)
		return s
	}
	return ""
}

func (r reply) number(i int) (int64, error) {
	n, err := strconv.ParseInt(r.text(i), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: a number is %q", checkpoint.ErrCorrupt, clip(r.text(i)))
	}
	return n, nil
}

func clip(s string) string { return s[:min(len(s), 20)] }

// stored is a record as a script answered it, with the head of its log.
type stored struct {
	checkpoint.Record
	fence string
	birth string // the fence it was born with: another one is another turn
	size  int64  // of the whole log
}

// record reads {_, fence, b, o, h, s, c, u, n, log}.
func (r reply) record() (*stored, error) {
	head, err := checkpoint.DecodeRecord([]byte(r.text(4)))
	if err != nil {
		return nil, err
	}
	s := &stored{Record: *head, fence: r.text(1), birth: r.text(2)}
	if s.State, err = checkpoint.DecodeState([]byte(r.text(5))); err != nil {
		return nil, err
	}
	created, err1 := r.number(6)
	updated, err2 := r.number(7)
	size, err3 := r.number(8)
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			return nil, err
		}
	}
	s.Owner = checkpoint.Owner(r.text(3))
	s.Created, s.Updated = time.UnixMicro(created).UTC(), time.UnixMicro(updated).UTC()
	s.size = size
	if log := r.text(9); log != "" {
		s.Log = []byte(log)
	}
	return s, nil
}

// identity encodes what of a record is fixed when the turn begins.
func identity(r checkpoint.Record) []byte {
	r.Owner, r.Log, r.State = "", nil, checkpoint.State{}
	r.Created, r.Updated = time.Time{}, time.Time{}
	b, _ := r.AppendBinary(nil) // its error is always nil
	return b
}

func encode(s checkpoint.State) []byte {
	b, _ := s.AppendBinary(nil) // its error is always nil
	return b
}
