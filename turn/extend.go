package turn

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Extend adds to s what the whole chunks at the start of more say, and moves m
// over them: for a log that is read while it is written, at a cost that does not
// grow with what was read before. It returns how many bytes it took; the rest, the
// beginning of a chunk, is to be given again with what follows it. m is the Mark of
// s and of nothing else. After an error neither is of use.
func (m *Mark) Extend(s *Snapshot, more []byte) (n int, err error) {
	at := 0
	if m.size == 0 {
		if len(more) == 0 {
			return 0, nil
		}
		if more[0] > version {
			return 0, fmt.Errorf("%w: %d, this is %d", ErrVersion, more[0], version)
		}
		at = 1
	}
	n = whole(more, at)
	if n == 0 {
		return 0, nil
	}
	r := reader{b: more[:n], at: at}
	for from := 0; r.at < n; {
		op := r.byte()
		if op != opSum {
			if s.apply(op, &r); r.bad {
				return 0, fmt.Errorf("%w: at byte %d", ErrCorrupt, m.size+int64(r.at))
			}
			continue
		}
		m.sum = crc32.Update(m.sum, castagnoli, more[from:r.at])
		if sum := r.take(4); r.bad || binary.LittleEndian.Uint32(sum) != m.sum {
			return 0, fmt.Errorf("%w: checksum at byte %d", ErrCorrupt, m.size+int64(r.at))
		}
		from = r.at
	}
	m.size += int64(n)
	m.blocks = m.blocks[:0]
	m.catchUp(s)
	return n, nil
}

// Whole returns how many bytes of a log its whole chunks are. A process that died
// while it wrote may have left the beginning of another.
func Whole(log []byte) int {
	if len(log) == 0 {
		return 0
	}
	return whole(log, 1)
}

// shapes are the operands of each operation: n is a number of any kind, 1 a byte, b
// bytes with their length, 4 the sum.
var shapes = [...]string{
	opHead: "b", opTruncate: "n", opOpen: "1nnbbb", opText: "nb", opSign: "nb", opExtras: "nn", opClose: "n",
	opUsage: "1nnb", opEnd: "n1b", opTerminal: "", opOpaques: "n", opSum: "4", opWithdraw: "n", opStage: "n1",
	opNotes: "nb", opRaw: "nb", opSeq: "n", opHeld: "b",
}

// whole returns where the last whole chunk of b ends, of which the first begins at
// at. What is no operation counts as whole: whoever applies it finds out.
func whole(b []byte, at int) (end int) {
	for at < len(b) {
		op := b[at]
		at++
		if op == 0 || int(op) >= len(shapes) {
			return len(b)
		}
		for _, shape := range shapes[op] {
			switch shape {
			case '1':
				at++
			case '4':
				at += 4
			default:
				v, n := binary.Uvarint(b[min(at, len(b)):])
				if n == 0 {
					return end
				}
				if n < 0 {
					return len(b)
				}
				if at += n; shape == 'b' {
					if v > uint64(len(b)-at) {
						return end
					}
					at += int(v)
				}
			}
			if at > len(b) {
				return end
			}
		}
		if op == opSum {
			end = at
		}
	}
	return end
}
