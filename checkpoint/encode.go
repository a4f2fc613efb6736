package checkpoint

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"time"
)

// The binary form of a record, for stores that keep bytes:
//
//	record = version identity state log crc
//
// Strings and the log are a uvarint length and that many bytes; times are varint
// microseconds of the Unix epoch, the zero time being the smallest varint; the
// rest are varints. crc is CRC-32C of everything before it, little endian. A
// store that keeps the log elsewhere encodes a record without one.
const version = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendBinary appends the encoding of r. The error is always nil.
func (r *Record) AppendBinary(dst []byte) ([]byte, error) {
	start := len(dst)
	dst = append(dst, version)
	dst = appendString(dst, string(r.Run))
	dst = appendString(dst, r.Thread)
	dst = binary.AppendVarint(dst, r.Step)
	dst = append(dst, r.Fingerprint[:]...)
	dst = appendString(dst, r.Dialect)
	dst = appendString(dst, r.Route)
	dst = appendString(dst, r.Model)
	dst = appendString(dst, string(r.Owner))
	dst = binary.AppendVarint(dst, micros(r.Created))
	dst = binary.AppendVarint(dst, micros(r.Updated))
	dst = r.State.append(dst)
	dst = append(binary.AppendUvarint(dst, uint64(len(r.Log))), r.Log...)
	return seal(dst, start), nil
}

// AppendBinary appends the encoding of s alone. The error is always nil.
func (s *State) AppendBinary(dst []byte) ([]byte, error) {
	start := len(dst)
	return seal(s.append(append(dst, version)), start), nil
}

func (s *State) append(dst []byte) []byte {
	dst = append(dst, byte(s.Phase))
	dst = binary.AppendVarint(dst, s.Seen)
	dst = binary.AppendVarint(dst, int64(s.Attempt))
	dst = binary.AppendVarint(dst, int64(s.Recoveries))
	dst = binary.AppendUvarint(dst, uint64(len(s.Causes)))
	for _, c := range s.Causes {
		dst = appendString(dst, c)
	}
	return dst
}

// DecodeRecord reverses [Record.AppendBinary]. Damage of any kind is [ErrCorrupt],
// a newer version [ErrVersion]. The record owns its memory.
func DecodeRecord(b []byte) (*Record, error) {
	d, err := unseal(b)
	if err != nil {
		return nil, fmt.Errorf("decode record: %w", err)
	}
	r := &Record{Run: RunID(d.string()), Thread: d.string(), Step: d.varint()}
	copy(r.Fingerprint[:], d.take(uint64(len(r.Fingerprint))))
	r.Dialect, r.Route, r.Model = d.string(), d.string(), d.string()
	r.Owner = Owner(d.string())
	r.Created, r.Updated = d.time(), d.time()
	r.State = d.state()
	if log := d.take(d.uvarint()); len(log) > 0 {
		r.Log = append([]byte(nil), log...)
	}
	if d.bad || len(d.b) > 0 {
		return nil, fmt.Errorf("decode record: %w", ErrCorrupt)
	}
	return r, nil
}

// DecodeState reverses [State.AppendBinary], with the errors of [DecodeRecord].
func DecodeState(b []byte) (State, error) {
	d, err := unseal(b)
	if err != nil {
		return State{}, fmt.Errorf("decode state: %w", err)
	}
	s := d.state()
	if d.bad || len(d.b) > 0 {
		return State{}, fmt.Errorf("decode state: %w", ErrCorrupt)
	}
	return s, nil
}

func seal(dst []byte, start int) []byte {
	return binary.LittleEndian.AppendUint32(dst, crc32.Checksum(dst[start:], castagnoli))
}

// unseal checks the version, which comes first so that a newer release may change
// all else, and the sum.
func unseal(b []byte) (*decoder, error) {
	if len(b) == 0 || b[0] == 0 {
		return nil, ErrCorrupt
	}
	if b[0] > version {
		return nil, fmt.Errorf("%w: %d, this is %d", ErrVersion, b[0], version)
	}
	n := len(b) - 4
	if n < 1 || binary.LittleEndian.Uint32(b[n:]) != crc32.Checksum(b[:n], castagnoli) {
		return nil, ErrCorrupt
	}
	return &decoder{b: b[1:n]}, nil
}

// decoder takes values off b; after the first that is missing it is bad.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) take(n uint64) []byte {
	if d.bad || n > uint64(len(d.b)) {
		d.bad = true
		return nil
	}
	p := d.b[:n]
	d.b = d.b[n:]
	return p
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if d.bad || n <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.b)
	if d.bad || n <= 0 {
		d.bad = true
		return 0
	}
	d.b = d.b[n:]
	return v
}

// count reads a varint that must not be negative.
func (d *decoder) count() int64 {
	v := d.varint()
	d.bad = d.bad || v < 0
	return v
}

func (d *decoder) string() string { return string(d.take(d.uvarint())) }

func (d *decoder) time() time.Time {
	us := d.varint()
	if us == math.MinInt64 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

func (d *decoder) state() (s State) {
	if phase := d.take(1); !d.bad {
		s.Phase = Phase(phase[0])
		d.bad = int(s.Phase) >= len(phaseNames)
	}
	s.Seen = d.count()
	s.Attempt, s.Recoveries = int(d.count()), int(d.count())
	n := d.uvarint()
	if n > MaxCauses {
		d.bad = true
		return s
	}
	for range n {
		s.Causes = append(s.Causes, d.string())
	}
	return s
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return math.MinInt64
	}
	return t.UnixMicro()
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}
