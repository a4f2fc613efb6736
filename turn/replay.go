package turn

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

var (
	// ErrCorrupt: the bytes are no log, or not a whole one.
	ErrCorrupt = errors.New("turn: corrupt snapshot")
	// ErrVersion: the log was written by a newer release. It is sound as far as
	// anyone can tell, and must not be overwritten.
	ErrVersion = errors.New("turn: snapshot of a newer version")
)

// Replay returns the snapshot that a log of [Snapshot.AppendSince] chunks
// describes. A log that was cut between two chunks is an earlier state; anything
// else that is damaged is [ErrCorrupt]. Nothing is allocated that the log does
// not hold the bytes of.
func Replay(log []byte) (*Snapshot, error) { return new(Mark).Replay(log) }

// Replay is the function Replay that also sets m to the end of the log, so that
// whoever takes a turn over goes on where the log ends.
func (m *Mark) Replay(log []byte) (*Snapshot, error) {
	*m = Mark{}
	s, _, err := replay(m, log)
	return s, err
}

// DecodeSnapshot reverses [Snapshot.AppendBinary]. It accepts canonical
// encodings only.
func DecodeSnapshot(b []byte) (*Snapshot, error) {
	s, chunks, err := replay(new(Mark), b)
	if err != nil {
		return nil, err
	}
	m := Mark{}
	if len(b) > 0 {
		m.version = b[0]
	}
	if again := s.appendWhole(make([]byte, 0, len(b)), &m); chunks != 1 || !bytes.Equal(again, b) {
		return nil, fmt.Errorf("%w: not canonical", ErrCorrupt)
	}
	return s, nil
}

func replay(m *Mark, log []byte) (s *Snapshot, chunks int, err error) {
	s = &Snapshot{}
	if len(log) == 0 {
		return s, 0, nil
	}
	switch v := log[0]; {
	case v > version:
		return nil, 0, fmt.Errorf("%w: %d, this is %d", ErrVersion, v, version)
	case v == 0:
		return nil, 0, fmt.Errorf("%w: version 0", ErrCorrupt)
	}
	r := reader{b: log, at: 1}
	for from := 0; r.at < len(log); {
		op := r.byte()
		if op != opSum {
			s.apply(op, &r)
			if r.bad {
				return nil, 0, fmt.Errorf("%w: at byte %d", ErrCorrupt, r.at)
			}
			continue
		}
		m.sum = crc32.Update(m.sum, castagnoli, log[from:r.at])
		if sum := r.take(4); r.bad || binary.LittleEndian.Uint32(sum) != m.sum {
			return nil, 0, fmt.Errorf("%w: checksum at byte %d", ErrCorrupt, r.at)
		}
		from = r.at
		m.size = int64(from)
		chunks++
	}
	if m.size != int64(len(log)) {
		return nil, 0, fmt.Errorf("%w: cut short", ErrCorrupt)
	}
	m.catchUp(s)
	return s, chunks, nil
}

// catchUp makes m say that everything in s is in the log.
func (m *Mark) catchUp(s *Snapshot) {
	m.head, m.terminated, m.opaques, m.seq, m.held = s.Head != nil, s.Terminated, s.Opaques, s.Seq, s.Held
	m.usage = s.Usage
	m.usage.Raw = bytes.Clone(s.Usage.Raw)
	m.ends = append([]End(nil), s.Ends...)
	for i := range s.Blocks {
		b := &s.Blocks[i]
		m.blocks = append(m.blocks, blockMark{
			text: len(b.Text), sign: len(b.Signature), extras: b.Extras, notes: len(b.Notes),
			stage: b.Stage, closed: b.Closed, withdrawn: b.Withdrawn, raw: b.Raw,
		})
	}
}

// apply performs one operation. An illegal one leaves r bad.
func (s *Snapshot) apply(op byte, r *reader) {
	switch op {
	case opHead:
		if head := r.bytes(); s.Head == nil {
			s.Head = append([]byte{}, head...)
		} else {
			r.bad = true
		}
	case opTruncate:
		if n := r.below(len(s.Blocks) + 1); !r.bad {
			s.Truncate(n)
		}
	case opOpen:
		s.applyOpen(r)
	case opText, opSign, opExtras, opClose, opWithdraw, opStage, opNotes, opRaw:
		if i := r.below(len(s.Blocks)); !r.bad {
			s.Blocks[i].apply(op, r)
		}
	case opUsage:
		s.Usage.Known = r.below(2) == 1
		s.Usage.Input, s.Usage.Output = r.int64(), r.int64()
		s.Usage.Raw = append(s.Usage.Raw[:0], r.bytes()...)
	case opEnd:
		choice, why, reason := r.below(MaxChoices), r.below(len(whyNames)), string(r.bytes())
		if r.bad {
			return
		}
		s.seen(choice)
		s.Ends[choice] = End{Why: Why(why), Reason: reason}
	case opTerminal:
		s.Terminated = true
	case opOpaques:
		s.Opaques = r.below(math.MaxInt)
	case opSeq:
		s.Seq = r.int64()
	case opHeld:
		s.Held = string(r.bytes())
	default:
		r.bad = true
	}
}

func (s *Snapshot) applyOpen(r *reader) {
	b := Block{Kind: BlockKind(r.below(len(blockNames)))}
	b.Choice, b.Index = r.int(), r.int()
	b.ID, b.Name = string(r.bytes()), string(r.bytes())
	if raw := r.bytes(); len(raw) > 0 {
		b.Raw = bytes.Clone(raw)
	}
	if !r.bad {
		s.Blocks = append(s.Blocks, b)
	}
}

func (b *Block) apply(op byte, r *reader) {
	switch op {
	case opText:
		if text := r.bytes(); !b.Closed {
			b.add(text)
		} else {
			r.bad = true
		}
	case opSign:
		if sign := r.bytes(); b.Closed {
			b.Signature = append(b.Signature, sign...)
		} else {
			r.bad = true
		}
	case opExtras:
		b.Extras = r.below(math.MaxInt)
	case opClose:
		b.Closed = true
	case opWithdraw:
		b.Withdrawn = true
	case opStage:
		b.Stage = r.byte()
	case opNotes:
		b.Notes = append(b.Notes, r.bytes()...)
	case opRaw:
		b.Raw = nil
		if raw := r.bytes(); len(raw) > 0 {
			b.Raw = bytes.Clone(raw)
		}
	}
}

// reader takes operands off a log. After the first that is missing or out of
// range it is bad and yields zeros.
type reader struct {
	b   []byte
	at  int
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n > len(r.b)-r.at {
		r.bad = true
		return nil
	}
	r.at += n
	return r.b[r.at-n : r.at]
}

func (r *reader) byte() byte {
	if p := r.take(1); p != nil {
		return p[0]
	}
	return 0
}

// below reads an unsigned number smaller than limit.
func (r *reader) below(limit int) int {
	v, n := binary.Uvarint(r.b[r.at:])
	if r.bad || n <= 0 || v >= uint64(limit) {
		r.bad = true
		return 0
	}
	r.at += n
	return int(v)
}

func (r *reader) int64() int64 {
	v, n := binary.Varint(r.b[r.at:])
	if r.bad || n <= 0 {
		r.bad = true
		return 0
	}
	r.at += n
	return v
}

func (r *reader) int() int {
	v := r.int64()
	if v != int64(int(v)) {
		r.bad = true
	}
	return int(v)
}

// bytes reads a length and that many bytes, aliasing the log.
func (r *reader) bytes() []byte {
	n := r.below(len(r.b) - r.at + 1)
	if r.bad {
		return nil
	}
	return r.take(n)
}
