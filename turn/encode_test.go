package turn

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"
)

// public is what a log tells of s: everything but the signatures of open blocks.
func public(s *Snapshot) *Snapshot {
	c := s.Clone()
	for i := range c.Blocks {
		if !c.Blocks[i].Closed {
			c.Blocks[i].Signature = nil
		}
	}
	return c
}

// same compares two snapshots, taking nil and empty for one thing except in
// Head, where they differ for Fold.
func same(t *testing.T, got, want *Snapshot) {
	t.Helper()
	if g, w := plain(got), plain(want); !reflect.DeepEqual(g, w) {
		t.Errorf("got  %+v\nwant %+v", g, w)
	}
	for i := range got.Blocks {
		if got.Blocks[i].Complete() != want.Blocks[i].Complete() {
			t.Errorf("block %d: complete %v", i, got.Blocks[i].Complete())
		}
	}
}

func plain(s *Snapshot) *Snapshot {
	c := s.Clone()
	c.Usage.Raw = append([]byte{}, c.Usage.Raw...)
	c.Ends = append([]End{}, c.Ends...)
	c.Blocks = append([]Block{}, c.Blocks...)
	for i := range c.Blocks {
		b := &c.Blocks[i]
		b.Text, b.Signature, b.Raw = append([]byte{}, b.Text...), append([]byte{}, b.Signature...), append([]byte{}, b.Raw...)
		b.Notes = append([]byte{}, b.Notes...)
	}
	return c
}

func encode(t *testing.T, s *Snapshot) []byte {
	t.Helper()
	b, err := s.AppendBinary(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func sample(t *testing.T) *Snapshot {
	return fold(t,
		Delta{Kind: Head, Raw: []byte(`{"id":"msg_1"}`)},
		open(0, Reasoning, "", ""), text(0, "hm"), sign(0, "sig"), shut(0),
		Delta{Kind: Open, Block: 1, Of: HostedResult, Index: -1, Raw: []byte(`{"type":"web_search_tool_result"}`)}, Delta{Kind: Extra, Block: 1},
		open(2, Call, "call_1", "get"), open(3, Call, "call_2", "set"), text(2, `{\"a\"`), text(3, `{`), text(2, `:1}`), text(3, `}`), shut(3),
		Delta{Kind: Opaque}, Delta{Kind: Count, Usage: Usage{Known: true, Input: 7, Output: -1, Raw: []byte("{}")}},
		finish(2, Paused, "pause_turn"), Delta{Kind: Terminal})
}

func TestSnapshotRoundTrip(t *testing.T) {
	for name, s := range map[string]*Snapshot{
		"nothing":        {},
		"empty head":     fold(t, Delta{Kind: Head}),
		"everything":     sample(t),
		"open signature": fold(t, open(0, Reasoning, "", ""), sign(0, "half")),
		"extremes":       {Usage: Usage{Input: math.MaxInt64, Output: math.MinInt64}, Blocks: []Block{{Index: math.MinInt, Choice: math.MaxInt}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := encode(t, s)
			got, err := DecodeSnapshot(b)
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, public(s))
			if (got.Head == nil) != (s.Head == nil) {
				t.Errorf("head nil: %v", got.Head == nil)
			}
			if again := encode(t, got); !bytes.Equal(again, b) {
				t.Errorf("not canonical:\n%x\n%x", b, again)
			}
			if got, err = Replay(b); err != nil {
				t.Fatalf("the encoding is no log: %v", err)
			}
			same(t, got, public(s))
		})
	}
}

// Fixed bytes: a later release must go on reading them.
func TestTheVersionsAreFrozen(t *testing.T) {
	one := fold(t, Delta{Kind: Head, Raw: []byte("h")}, open(0, Call, "i", "n"), text(0, "{}"), shut(0), finish(0, ToolUse, "tool_use"), Delta{Kind: Terminal})
	const ops = "010168" + "030400000169016e00" + "0400027b7d"
	const ends = "09000308746f6f6c5f757365" + "0a"
	two := one.Clone()
	b := &two.Blocks[0]
	b.Notes, b.Stage, b.Withdrawn, two.Seq = []byte("1"), 9, true, 5
	three := one.Clone()
	three.Held = "r1"
	for _, c := range []struct {
		version byte
		s       *Snapshot
		want    string
	}{
		{1, one, "01" + ops + "0700" + ends + "0c"},
		{2, two, "02" + ops + "0f000131" + "0e0009" + "0700" + "0d00" + ends + "110a" + "0c"},
		{3, three, "03" + ops + "0700" + ends + "12027231" + "0c"},
	} {
		m := Mark{version: c.version}
		got := c.s.appendWhole(nil, &m)
		if got := fmt.Sprintf("%x", got[:len(got)-4]); got != c.want {
			t.Errorf("version %d:\n%s, want\n%s", c.version, got, c.want)
		}
		read, err := DecodeSnapshot(got)
		if err != nil {
			t.Fatalf("version %d: %v", c.version, err)
		}
		same(t, read, c.s)
	}
}

// A process of this release takes over a log of the last one and goes on in it.
func TestAnOlderLogIsCarriedOn(t *testing.T) {
	s := fold(t, Delta{Kind: Head, Raw: []byte("h")}, open(0, Prose, "", ""), text(0, "a"))
	log := s.appendWhole(nil, &Mark{version: 1})
	var m Mark
	taken, err := m.Replay(log)
	if err != nil {
		t.Fatal(err)
	}
	taken.Blocks[0].Withdrawn, taken.Seq, taken.Held = true, 12, "r1"
	got, err := Replay(taken.AppendSince(log, &m))
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, taken)
}

// What a dialect of numbered events needs when another process takes over: which
// blocks no longer count, how far each has come on the wire, the next number, and
// what the provider made of a block when it closed it. The first two were once
// forgotten: the successor counted a withdrawn block as said.
func TestTheLogTellsTheLifeOfABlock(t *testing.T) {
	s := fold(t, Delta{Kind: Open, Of: Prose, Raw: []byte("opening"), Seq: 3, Stage: 1}, text(0, "a"),
		Delta{Kind: Extra, Raw: []byte("{}"), Keep: true, Seq: 4})
	var m Mark
	log := s.AppendSince(nil, &m)
	for _, d := range []Delta{
		{Kind: Extra, Raw: []byte("[]"), Keep: true, Seq: 5}, {Kind: Extra, Raw: []byte("not kept")},
		{Kind: Close, Stage: 4, Seq: 6}, {Kind: Text, Stage: 8},
		{Kind: Extra, Sum: true, Stage: 32, Raw: []byte("whole")},
	} {
		if err := s.Fold(d); err != nil {
			t.Fatal(err)
		}
	}
	s.Blocks[0].Withdrawn = true
	got, err := Replay(s.AppendSince(log, &m))
	if err != nil {
		t.Fatal(err)
	}
	same(t, got, s)
	b := &got.Blocks[0]
	if b.Live() || b.Stage != 45 || string(b.Raw) != "whole" || string(b.Notes) != "{},[]" || b.Extras != 3 || got.Seq != 6 {
		t.Errorf("%+v at %d", b, got.Seq)
	}
}

func TestSignatureOfAnOpenBlockStaysPrivate(t *testing.T) {
	s := fold(t, open(0, Reasoning, "", ""), text(0, "hm"), sign(0, "SECRET"))
	var m Mark
	log := s.AppendSince(nil, &m)
	if bytes.Contains(log, []byte("SECRET")) || bytes.Contains(encode(t, s), []byte("SECRET")) {
		t.Fatal("a partial signature left the process (FIELD-REPORTS D7)")
	}
	if err := s.Fold(shut(0)); err != nil {
		t.Fatal(err)
	}
	got, err := Replay(s.AppendSince(log, &m))
	if err != nil || string(got.Blocks[0].Signature) != "SECRET" {
		t.Errorf("%v: the signature of a closed block is lost: %+v", err, got)
	}
}

func TestTheLogTellsRetractions(t *testing.T) {
	for _, tc := range []struct {
		name string
		back func(*Snapshot)
		then []Delta
	}{
		{"nothing follows", func(s *Snapshot) { s.Truncate(1) }, nil},
		{"another block of the same shape", func(s *Snapshot) { s.Truncate(1) },
			[]Delta{open(1, Call, "b", "f"), text(1, `{\"q\":2}`)}},
		{"more blocks than before", func(s *Snapshot) { s.Truncate(1) },
			[]Delta{open(1, Prose, "", ""), text(1, "x"), open(2, Prose, "", "")}},
		{"another finish", func(s *Snapshot) { s.Truncate(1) },
			[]Delta{open(1, Prose, "", ""), finish(0, Stopped, "stop")}},
		{"other and more text in the same block", func(s *Snapshot) {
			s.Truncate(1)
			s.Blocks[0].Text, s.Blocks[0].Closed = s.Blocks[0].Text[:1], false
		}, []Delta{text(0, "nother text"), open(1, Prose, "", "")}},
		{"all of it", func(s *Snapshot) { s.Truncate(0) }, []Delta{open(0, Prose, "", ""), text(0, "new")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := fold(t, open(0, Prose, "", ""), text(0, "a text"), open(1, Call, "a", "f"), text(1, `{\"p\":1}`), finish(0, ToolUse, "t"), Delta{Kind: Terminal})
			var m Mark
			log := s.AppendSince(nil, &m)
			tc.back(s)
			m.Recede(s)
			for _, d := range tc.then {
				if err := s.Fold(d); err != nil {
					t.Fatal(err)
				}
			}
			got, err := Replay(s.AppendSince(log, &m))
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, s)
		})
	}
}

// A caller that forgot Mark.Recede is caught where the snapshot shows it.
func TestVisibleRetractionsNeedNoNotice(t *testing.T) {
	for name, change := range map[string]func(*Snapshot){
		"fewer blocks":    func(s *Snapshot) { s.Truncate(1) },
		"only the ends":   func(s *Snapshot) { s.Truncate(2) },
		"a shorter block": func(s *Snapshot) { s.Truncate(1); s.Blocks = append(s.Blocks, Block{Kind: Prose, Text: []byte("b")}) },
		"an open block": func(s *Snapshot) {
			s.Truncate(1)
			s.Blocks = append(s.Blocks, Block{Kind: Prose, Text: []byte("a much longer text")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := fold(t, open(0, Prose, "", ""), text(0, "a"), open(1, Call, "a", "f"), text(1, `{\"p\":1}`), finish(0, ToolUse, "t"), Delta{Kind: Terminal})
			var m Mark
			log := s.AppendSince(nil, &m)
			change(s)
			got, err := Replay(s.AppendSince(log, &m))
			if err != nil {
				t.Fatal(err)
			}
			same(t, got, s)
		})
	}
}

func TestWhoeverTakesOverGoesOnInTheLog(t *testing.T) {
	s := sample(t)
	log := s.AppendSince(nil, new(Mark))
	var m Mark
	taken, err := m.Replay(log)
	if err != nil || m.Size() != int64(len(log)) {
		t.Fatalf("%v, mark at %d of %d", err, m.Size(), len(log))
	}
	if more := taken.AppendSince(nil, &m); len(more) != 0 {
		t.Fatalf("nothing was said, yet %x is written", more)
	}
	for _, d := range []Delta{text(2, " "), open(4, Prose, "", ""), text(4, "on")} {
		if err := taken.Fold(d); err != nil {
			t.Fatal(err)
		}
	}
	log = taken.AppendSince(log, &m)
	got, err := Replay(log)
	if err != nil || m.Size() != int64(len(log)) {
		t.Fatalf("%v, mark at %d of %d", err, m.Size(), len(log))
	}
	same(t, got, taken)
}

// said draws a delta that can follow s, most of the time.
func said(r *rand.Rand, s *Snapshot) Delta {
	bodies := []string{"a", `{\"a\":`, `1}`, `{}`, `\n`, `\ud83d`, `\ude00`, "é", ""}
	body := []byte(bodies[r.IntN(len(bodies))])
	block := r.IntN(len(s.Blocks) + 1)
	choice := r.IntN(3)
	switch r.IntN(16) {
	case 0:
		return Delta{Kind: Head, Raw: body}
	case 1, 2:
		return Delta{Kind: Open, Block: len(s.Blocks), Of: BlockKind(r.IntN(int(Unknown)) + 1), Choice: choice, Index: r.IntN(9) - 1, ID: body, Name: []byte("f"), Raw: body, Text: body, Stage: uint8(r.IntN(4))}
	case 3, 4:
		return Delta{Kind: Sign, Block: block, Text: body}
	case 5:
		return Delta{Kind: Extra, Block: block, Raw: body, Keep: r.IntN(2) == 0, Seq: r.Int64N(99)}
	case 6, 7:
		return Delta{Kind: Close, Block: block, Raw: body, Stage: uint8(r.IntN(4)), Seq: r.Int64N(99)}
	case 8:
		return Delta{Kind: Count, Usage: Usage{Known: r.IntN(2) == 0, Input: r.Int64N(9), Output: r.Int64N(9), Raw: body}}
	case 9:
		return Delta{Kind: Finish, Choice: choice, Why: Why(r.IntN(int(OtherEnd)) + 1), Text: body}
	case 10:
		return Delta{Kind: Terminal}
	case 11:
		return Delta{Kind: Opaque}
	}
	return Delta{Kind: Text, Block: block, Text: body}
}

// recede takes s back to an earlier point, as relay does when what was held is
// dropped: blocks go, and the last one that stays may lose text and open again.
func recede(r *rand.Rand, s *Snapshot) {
	s.Truncate(r.IntN(len(s.Blocks) + 1))
	if b := s.Last(); b != nil && r.IntN(2) == 0 {
		b.Closed = false
		b.Signature = nil
		b.Text = b.Text[:r.IntN(len(b.Text)+1)]
		*s = *s.Clone() // rebuilds what is derived from the text
	}
}

// The law of the log: whenever it is written, it tells the snapshot.
func TestReplayOfAnyFlushesIsTheSnapshot(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	retractions, flushes := 0, 0
	for run := range 300 {
		s, m, log := &Snapshot{}, Mark{}, []byte(nil)
		for range 60 {
			d := said(r, s)
			before := s.Clone()
			if err := s.Fold(d); err != nil && !reflect.DeepEqual(plain(s), plain(before)) {
				t.Fatalf("run %d: %v changed the snapshot", run, err)
			}
			if b := s.Last(); b != nil && r.IntN(9) == 0 {
				b.Withdrawn = true
			}
			if r.IntN(25) == 0 && len(s.Blocks) > 0 {
				recede(r, s)
				m.Recede(s)
				retractions++
			}
			if r.IntN(5) > 0 {
				continue
			}
			log = s.AppendSince(log, &m)
			flushes++
			if m.Size() != int64(len(log)) {
				t.Fatalf("run %d: mark at %d of %d", run, m.Size(), len(log))
			}
			got, err := Replay(log)
			if err != nil {
				t.Fatalf("run %d: %v", run, err)
			}
			if same(t, got, public(s)); t.Failed() {
				t.Fatalf("run %d", run)
			}
			if again := s.AppendSince(nil, &m); len(again) != 0 {
				t.Fatalf("run %d: said twice: %x", run, again)
			}
			if whole, err := DecodeSnapshot(encode(t, s)); err != nil {
				t.Fatalf("run %d: %v", run, err)
			} else if same(t, whole, got); t.Failed() {
				t.Fatalf("run %d", run)
			}
		}
	}
	if retractions == 0 || flushes == 0 {
		t.Fatal("the property was not tried")
	}
}

func TestDamageIsAnError(t *testing.T) {
	s := sample(t)
	whole := encode(t, s)
	for n := range len(whole) {
		if _, err := DecodeSnapshot(whole[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut to %d of %d: %v", n, len(whole), err)
		}
		if _, err := Replay(whole[:n]); n > 0 && !errors.Is(err, ErrCorrupt) {
			t.Errorf("log cut to %d of %d: %v", n, len(whole), err)
		}
	}
	for i := 1; i < len(whole); i++ {
		for bit := range 8 {
			bad := bytes.Clone(whole)
			bad[i] ^= 1 << bit
			if _, err := Replay(bad); !errors.Is(err, ErrCorrupt) {
				t.Errorf("bit %d of byte %d flipped: %v", bit, i, err)
			}
		}
	}
	if _, err := DecodeSnapshot(append(bytes.Clone(whole), 0)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("trailing byte: %v", err)
	}
}

// The sum runs over the whole log: a store that loses, doubles or swaps a chunk
// is found out.
func TestMisplacedChunksAreAnError(t *testing.T) {
	s := fold(t, open(0, Prose, "", ""))
	var m Mark
	var chunks [][]byte
	for i := range 4 {
		if err := s.Fold(text(0, string(rune('a'+i)))); err != nil {
			t.Fatal(err)
		}
		chunks = append(chunks, s.AppendSince(nil, &m))
	}
	for name, order := range map[string][]int{
		"lost": {0, 2, 3}, "doubled": {0, 1, 1, 2, 3}, "swapped": {0, 2, 1, 3}, "headless": {1, 2, 3},
	} {
		var log []byte
		for _, i := range order {
			log = append(log, chunks[i]...)
		}
		// A log without its first chunk begins with a tag instead of a version.
		if _, err := Replay(log); !errors.Is(err, ErrCorrupt) && (name != "headless" || !errors.Is(err, ErrVersion)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := Replay(bytes.Join(chunks[:3], nil)); err != nil || string(got.Blocks[0].Text) != "abc" {
		t.Errorf("an earlier state: %v", err)
	}
	if _, err := DecodeSnapshot(bytes.Join(chunks, nil)); !errors.Is(err, ErrCorrupt) {
		t.Errorf("several chunks are not canonical: %v", err)
	}
}

func TestVersions(t *testing.T) {
	whole := encode(t, sample(t))
	for v, want := range map[byte]error{0: ErrCorrupt, version + 1: ErrVersion, 255: ErrVersion} {
		whole[0] = v
		if _, err := DecodeSnapshot(whole); !errors.Is(err, want) {
			t.Errorf("version %d: %v", v, err)
		}
	}
	if _, err := DecodeSnapshot(nil); !errors.Is(err, ErrCorrupt) {
		t.Errorf("no bytes: %v", err)
	}
	if s, err := Replay(nil); err != nil || len(s.Blocks) != 0 {
		t.Errorf("an empty log: %v", err)
	}
}

// seal makes a sound chunk of arbitrary operations, so that they and not the sum
// are what is refused.
func seal(ops ...byte) []byte {
	var m Mark
	log := append([]byte{version}, ops...)
	return m.seal(log, len(log))
}

func TestIllegalOperationsAreAnError(t *testing.T) {
	huge := binary.AppendUvarint(nil, 1<<62)
	openCall := []byte{opOpen, byte(Call), 0, 0, 0, 0, 0}
	for name, ops := range map[string][]byte{
		"unknown tag":             {99},
		"tag zero":                {0},
		"text without a block":    {opText, 0, 1, 'a'},
		"close without a block":   {opClose, 0},
		"text after the close":    append(append([]byte{}, openCall...), opClose, 0, opText, 0, 1, 'a'),
		"signature while open":    append(append([]byte{}, openCall...), opSign, 0, 1, 'a'),
		"truncated to more":       {opTruncate, 1},
		"unknown block kind":      {opOpen, byte(Unknown) + 1, 0, 0, 0, 0, 0},
		"unknown why":             {opEnd, 0, byte(OtherEnd) + 1, 0},
		"end of a hostile choice": append(append([]byte{opEnd}, huge...), 1, 0),
		"two heads":               {opHead, 0, opHead, 0},
		"known is neither":        {opUsage, 2, 0, 0, 0},
		"hostile head length":     append([]byte{opHead}, huge...),
		"hostile text length":     append(append(append([]byte{}, openCall...), opText, 0), huge...),
		"hostile block":           append([]byte{opClose}, huge...),
		"hostile truncation":      append([]byte{opTruncate}, huge...),
		"withdrawal of no block":  {opWithdraw, 0},
		"stage without a value":   append(append([]byte{}, openCall...), opStage, 0),
		"hostile notes length":    append(append(append([]byte{}, openCall...), opNotes, 0), huge...),
		"number too long":         {opOpaques, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Replay(seal(ops...)); !errors.Is(err, ErrCorrupt) {
				t.Errorf("got %v", err)
			}
		})
	}
	if _, err := Replay(seal(openCall...)); err != nil {
		t.Fatalf("the harness refuses what is legal: %v", err)
	}
}

func TestAppendSinceDoesNotAllocate(t *testing.T) {
	s := fold(t, Delta{Kind: Head, Raw: []byte("h")}, open(0, Prose, "", ""), open(1, Call, "i", "n"))
	for i := range s.Blocks {
		s.Blocks[i].Text = make([]byte, 0, 1<<20)
	}
	var m Mark
	dst := s.AppendSince(make([]byte, 0, 1<<20), &m)
	usage := []byte(`{"output_tokens":1}`)
	ds := []Delta{text(0, "some words "), text(1, "[1],"), {Kind: Count, Usage: Usage{Known: true, Raw: usage}}}
	if n := testing.AllocsPerRun(1000, func() {
		usage[0] ^= 1
		for i := range ds {
			if err := s.Fold(ds[i]); err != nil {
				t.Error(err)
			}
		}
		dst = s.AppendSince(dst[:0], &m)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The cost of a checkpoint is linear in the text: a flush after every delta
// writes a bounded overhead each, not the text again.
func TestLogIsLinearInTheText(t *testing.T) {
	s := fold(t, open(0, Prose, "", ""))
	var m Mark
	var log []byte
	const n, word = 5000, "some words "
	for range n {
		if err := s.Fold(text(0, word)); err != nil {
			t.Fatal(err)
		}
		log = s.AppendSince(log, &m)
	}
	if most := n*(len(word)+8) + 32; len(log) > most {
		t.Errorf("%d bytes for %d of text, want at most %d", len(log), n*len(word), most)
	}
}

func FuzzReplay(f *testing.F) {
	s := fold(&testing.T{}, open(0, Call, "i", "n"), text(0, "{}"), shut(0), finish(0, ToolUse, "tool_use"))
	b, _ := s.AppendBinary(nil)
	f.Add(b[1 : len(b)-5])
	f.Add([]byte{opTruncate, 0, opUsage, 1, 2, 2, 0, opOpaques, 1})
	f.Fuzz(func(t *testing.T, ops []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := Replay(seal(ops...))
		runtime.ReadMemStats(&after)
		if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20+2048*uint64(len(ops)) {
			t.Errorf("%d bytes allocated for %d", grown, len(ops))
		}
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("unnamed error %v", err)
			}
			return
		}
		again, err := DecodeSnapshot(encode(t, s))
		if err != nil {
			t.Fatal(err)
		}
		same(t, again, public(s))
	})
}

func FuzzFold(f *testing.F) {
	f.Add(uint64(1), uint64(2))
	f.Fuzz(func(t *testing.T, a, b uint64) {
		r := rand.New(rand.NewPCG(a, b))
		s, m, log := &Snapshot{}, Mark{}, []byte(nil)
		for range 200 {
			before := s.Clone()
			if err := s.Fold(said(r, s)); err != nil && !reflect.DeepEqual(plain(s), plain(before)) {
				t.Fatalf("%v changed the snapshot", err)
			}
			if r.IntN(8) == 0 {
				log = s.AppendSince(log, &m)
			}
		}
		got, err := Replay(s.AppendSince(log, &m))
		if err != nil {
			t.Fatal(err)
		}
		same(t, got, public(s))
	})
}

func BenchmarkAppendSince(b *testing.B) {
	s := &Snapshot{}
	if err := s.Fold(Delta{Kind: Open, Of: Prose}); err != nil {
		b.Fatal(err)
	}
	var m Mark
	dst := make([]byte, 0, 4096)
	words := text(0, "fifty milliseconds of text, about so much of it at a time")
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Fold(words); err != nil {
			b.Fatal(err)
		}
		dst = s.AppendSince(dst[:0], &m)
	}
}
