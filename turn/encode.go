package turn

import (
	"encoding/binary"
	"hash/crc32"
)

// The binary form of a snapshot is a log of operations. A chunk is what one call
// of AppendSince wrote:
//
//	log   = [ version chunk+ ]                   empty: nothing was said
//	chunk = op+ sum
//	op    = tag operand*
//
//	opHead      bytes                            data of the identifying event
//	opTruncate  n                                as Snapshot.Truncate
//	opOpen      kind choice index id name raw    the next block
//	opText      block bytes                      more text
//	opSign      block bytes                      more signature; closed blocks only
//	opExtras    block count                      new total
//	opClose     block
//	opUsage     known input output raw           replaces
//	opEnd       choice why reason                replaces; missing ones before it are unfinished
//	opTerminal
//	opOpaques   count                            new total
//	opSum       crc                              CRC-32C of the log up to and with this tag, without earlier sums; 4 bytes, little endian
//	opWithdraw  block                            version 2 and later, as are all that follow
//	opStage     block stage                      replaces
//	opNotes     block bytes                      more kept parts
//	opRaw       block bytes                      replaces the opening's
//	opSeq       number                           new highest event number
//	opHeld      bytes                            version 3: replaces
//
// Unsigned operands are uvarints; choice, index, input, output and the event number, which a
// provider could make negative, are varints; stage is a byte. bytes, id, name, raw and reason are
// a uvarint length and that many bytes. The sum covers the whole log, so that a
// lost, doubled or reordered chunk is found and not only a damaged one.
//
// A log of an older version is read as it is, and may grow newer operations.
const version = 3

const (
	opHead byte = iota + 1
	opTruncate
	opOpen
	opText
	opSign
	opExtras
	opClose
	opUsage
	opEnd
	opTerminal
	opOpaques
	opSum
	opWithdraw
	opStage
	opNotes
	opRaw
	opSeq
	opHeld
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Mark remembers how much of a snapshot is in a log. The zero value is the start
// of a log. A Mark belongs to one snapshot and one log, and copies of it share
// their memory.
type Mark struct {
	size       int64 // bytes of the log
	sum        uint32
	version    byte // of the log; 0: the newest
	head       bool
	terminated bool
	cut        bool // a retraction is to be written …
	keep       int  // … that leaves so many blocks of the log standing
	blocks     []blockMark
	ends       []End
	opaques    int
	seq        int64
	held       string
	usage      Usage
}

type blockMark struct {
	text, sign, extras, notes int
	stage                     uint8
	closed, withdrawn         bool
	raw                       []byte // the block's own slice: a new Raw is another one
}

// Size returns the length of the log in bytes: the offset of the next chunk.
func (m *Mark) Size() int64 { return m.size }

// Recede notes that s was taken back: blocks were dropped, the last one lost text
// or was opened again. It is called right after every such change, before s grows
// again: later, nothing in the snapshot tells that what follows is something else.
func (m *Mark) Recede(s *Snapshot) {
	keep := len(m.blocks)
	if m.cut {
		keep = m.keep
	}
	stands := min(keep, len(s.Blocks))
	for i := range stands {
		if k, b := &m.blocks[i], &s.Blocks[i]; len(b.Text) < k.text || len(b.Signature) < k.sign || len(b.Notes) < k.notes ||
			k.closed && !b.Closed || k.withdrawn && !b.Withdrawn {
			stands = i // what is left of it is written anew
			break
		}
	}
	if stands < keep {
		m.keep, m.cut = stands, true
	}
}

// AppendBinary appends the canonical encoding of s: the log of one chunk that
// begins with nothing. The signature of an open block is private and left out
// (FIELD-REPORTS D7). The error is always nil.
func (s *Snapshot) AppendBinary(dst []byte) ([]byte, error) {
	var m Mark
	return s.appendWhole(dst, &m), nil
}

func (s *Snapshot) appendWhole(dst []byte, m *Mark) []byte {
	if dst = s.AppendSince(dst, m); m.size == 0 {
		dst = m.seal(append(dst, m.spelled()), 1)
	}
	return dst
}

func (m *Mark) spelled() byte {
	if m.version == 0 {
		return version
	}
	return m.version
}

// AppendSince appends one chunk with what s has more than the log of m, and
// advances m. It appends nothing if there is nothing. The cost is linear in what
// was added, plus one look at every block; nothing is allocated beyond the growth
// of dst and, when blocks open, of m.
func (s *Snapshot) AppendSince(dst []byte, m *Mark) []byte {
	start := len(dst)
	if m.size == 0 {
		dst = append(dst, m.spelled())
	}
	bare := len(dst)
	if s.Head != nil && !m.head {
		m.head = true
		dst = appendBytes(append(dst, opHead), s.Head)
	}
	dst = s.appendCut(dst, m)
	for i := range s.Blocks {
		dst = s.Blocks[i].appendSince(dst, i, m)
	}
	dst = s.appendState(dst, m)
	if len(dst) == bare {
		return dst[:start]
	}
	return m.seal(dst, len(dst)-start)
}

// appendCut writes the retraction that m was told of or that shows.
func (s *Snapshot) appendCut(dst []byte, m *Mark) []byte {
	m.Recede(s)
	if !m.cut {
		m.keep = len(m.blocks)
		m.cut = len(s.Ends) < len(m.ends) || m.terminated && !s.Terminated
	}
	if !m.cut {
		return dst
	}
	m.cut, m.blocks, m.ends, m.terminated = false, m.blocks[:m.keep], m.ends[:0], false
	return binary.AppendUvarint(append(dst, opTruncate), uint64(m.keep))
}

func (b *Block) appendSince(dst []byte, i int, m *Mark) []byte {
	if i == len(m.blocks) {
		dst = append(dst, opOpen, byte(b.Kind))
		dst = binary.AppendVarint(dst, int64(b.Choice))
		dst = binary.AppendVarint(dst, int64(b.Index))
		dst = appendString(dst, b.ID)
		dst = appendString(dst, b.Name)
		dst = appendBytes(dst, b.Raw)
		m.blocks = append(m.blocks, blockMark{raw: b.Raw})
	}
	k := &m.blocks[i]
	if n := len(b.Text); n > k.text {
		dst = appendBytes(binary.AppendUvarint(append(dst, opText), uint64(i)), b.Text[k.text:])
		k.text = n
	}
	if b.Extras != k.extras {
		dst = binary.AppendUvarint(binary.AppendUvarint(append(dst, opExtras), uint64(i)), uint64(b.Extras))
		k.extras = b.Extras
	}
	if n := len(b.Notes); n > k.notes {
		dst = appendBytes(binary.AppendUvarint(append(dst, opNotes), uint64(i)), b.Notes[k.notes:])
		k.notes = n
	}
	if b.Stage != k.stage {
		dst = append(binary.AppendUvarint(append(dst, opStage), uint64(i)), b.Stage)
		k.stage = b.Stage
	}
	if !sameSlice(b.Raw, k.raw) {
		dst = appendBytes(binary.AppendUvarint(append(dst, opRaw), uint64(i)), b.Raw)
		k.raw = b.Raw
	}
	if b.Closed && !k.closed {
		dst = binary.AppendUvarint(append(dst, opClose), uint64(i))
		k.closed = true
	}
	if n := len(b.Signature); b.Closed && n > k.sign {
		dst = appendBytes(binary.AppendUvarint(append(dst, opSign), uint64(i)), b.Signature[k.sign:])
		k.sign = n
	}
	if b.Withdrawn && !k.withdrawn {
		dst = binary.AppendUvarint(append(dst, opWithdraw), uint64(i))
		k.withdrawn = true
	}
	return dst
}

// sameSlice tells without reading them whether two slices are one.
func sameSlice(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// appendState writes what belongs to the turn and not to a block.
func (s *Snapshot) appendState(dst []byte, m *Mark) []byte {
	if u, k := &s.Usage, &m.usage; u.Known != k.Known || u.Input != k.Input || u.Output != k.Output || string(u.Raw) != string(k.Raw) {
		known := byte(0)
		if u.Known {
			known = 1
		}
		dst = append(dst, opUsage, known)
		dst = binary.AppendVarint(dst, u.Input)
		dst = binary.AppendVarint(dst, u.Output)
		dst = appendBytes(dst, u.Raw)
		raw := append(k.Raw[:0], u.Raw...)
		*k = *u
		k.Raw = raw
	}
	for i, e := range s.Ends {
		if i < len(m.ends) && e == m.ends[i] {
			continue
		}
		dst = binary.AppendUvarint(append(dst, opEnd), uint64(i))
		dst = appendString(append(dst, byte(e.Why)), e.Reason)
		if i == len(m.ends) {
			m.ends = append(m.ends, e)
		}
		m.ends[i] = e
	}
	if s.Terminated && !m.terminated {
		dst = append(dst, opTerminal)
		m.terminated = true
	}
	if s.Opaques != m.opaques {
		dst = binary.AppendUvarint(append(dst, opOpaques), uint64(s.Opaques))
		m.opaques = s.Opaques
	}
	if s.Seq != m.seq {
		dst = binary.AppendVarint(append(dst, opSeq), s.Seq)
		m.seq = s.Seq
	}
	if s.Held != m.held {
		dst = appendString(append(dst, opHeld), s.Held)
		m.held = s.Held
	}
	return dst
}

// seal ends the chunk that is the last n bytes of dst.
func (m *Mark) seal(dst []byte, n int) []byte {
	dst = append(dst, opSum)
	m.sum = crc32.Update(m.sum, castagnoli, dst[len(dst)-1-n:])
	m.size += int64(n) + 1 + 4
	return binary.LittleEndian.AppendUint32(dst, m.sum)
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}
