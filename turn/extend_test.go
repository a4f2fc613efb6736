package turn

import (
	"bytes"
	"errors"
	"testing"
)

// grown is a log of several chunks with every operation a turn usually has.
func grown(t *testing.T) (log []byte, s *Snapshot, bounds []int) {
	t.Helper()
	s = &Snapshot{}
	var m Mark
	for _, ds := range [][]Delta{
		{{Kind: Head, Raw: []byte(`{"id":"a"}`)}, {Kind: Open, Of: Prose}, {Kind: Text, Text: []byte("one ")}},
		{{Kind: Text, Text: bytes.Repeat([]byte("two "), 100)}, {Kind: Close}},
		{{Kind: Open, Of: Call, Block: 1, Index: 1, ID: []byte("c1"), Name: []byte("f")}, {Kind: Text, Block: 1, Text: []byte(`{\"a\":1}`)}},
		{{Kind: Close, Block: 1}, {Kind: Count, Usage: Usage{Known: true, Input: 3, Output: 400}}, {Kind: Finish, Why: ToolUse, Text: []byte("tool_use")}},
		{{Kind: Terminal}},
	} {
		for _, d := range ds {
			if err := s.Fold(d); err != nil {
				t.Fatal(err)
			}
		}
		log = s.AppendSince(log, &m)
		bounds = append(bounds, len(log))
	}
	return log, s, bounds
}

// A log that is read while it is written says the same as one that is read at once,
// wherever the reads were cut, and is continued at the same place.
func TestExtendedInPiecesIsTheSameTurn(t *testing.T) {
	log, want, _ := grown(t)
	whole, _ := want.AppendBinary(nil)
	for size := 1; size <= len(log); size++ {
		var m Mark
		s := &Snapshot{}
		var have []byte
		for at := 0; at < len(log); at += size {
			have = append(have, log[at:min(len(log), at+size)]...)
			n, err := m.Extend(s, have)
			if err != nil {
				t.Fatalf("pieces of %d, at %d: %v", size, at, err)
			}
			have = have[n:]
		}
		got, _ := s.AppendBinary(nil)
		if len(have) != 0 || m.Size() != int64(len(log)) || !bytes.Equal(got, whole) {
			t.Fatalf("pieces of %d: %d bytes left, mark at %d, the turn is %q", size, len(have), m.Size(), got)
		}
		s.Opaques++
		more := s.AppendSince(nil, &m)
		if again, err := Replay(append(bytes.Clone(log), more...)); err != nil || again.Opaques != s.Opaques {
			t.Fatalf("pieces of %d: it does not go on: %v", size, err)
		}
	}
}

// A process that dies while it writes leaves whole chunks and the beginning of one.
func TestWholeIsWhatCanBeRead(t *testing.T) {
	log, _, bounds := grown(t)
	want := 0
	for n := range len(log) + 1 {
		for _, b := range bounds {
			if b <= n {
				want = b
			}
		}
		got := Whole(log[:n])
		if got != want {
			t.Fatalf("of %d bytes %d are whole, want %d", n, got, want)
		}
		if _, err := Replay(log[:got]); err != nil && got > 0 {
			t.Fatalf("%d bytes: %v", got, err)
		}
	}
}

func TestExtendFindsDamage(t *testing.T) {
	log, _, bounds := grown(t)
	for at := range log {
		bad := bytes.Clone(log)
		bad[at] ^= 0x40
		var m Mark
		s := &Snapshot{}
		n, err := m.Extend(s, bad)
		if err == nil && n > bounds[max(0, indexAfter(bounds, at)-1)] && n > at {
			t.Fatalf("byte %d was changed and %d bytes were taken", at, n)
		}
		if err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
			t.Fatalf("byte %d: %v", at, err)
		}
	}
}

func indexAfter(bounds []int, at int) int {
	for i, b := range bounds {
		if b > at {
			return i
		}
	}
	return len(bounds)
}
