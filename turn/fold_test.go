package turn

import (
	"errors"
	"reflect"
	"testing"
)

func open(block int, of BlockKind, id, name string) Delta {
	return Delta{Kind: Open, Block: block, Of: of, Index: block, ID: []byte(id), Name: []byte(name)}
}

func text(block int, body string) Delta {
	return Delta{Kind: Text, Block: block, Text: []byte(body)}
}

func sign(block int, body string) Delta {
	return Delta{Kind: Sign, Block: block, Text: []byte(body)}
}

func shut(block int) Delta { return Delta{Kind: Close, Block: block} }

func finish(choice int, why Why, reason string) Delta {
	return Delta{Kind: Finish, Choice: choice, Why: why, Text: []byte(reason)}
}

func fold(t *testing.T, ds ...Delta) *Snapshot {
	t.Helper()
	s := &Snapshot{}
	for i, d := range ds {
		if err := s.Fold(d); err != nil {
			t.Fatalf("delta %d, %v: %v", i, d.Kind, err)
		}
	}
	return s
}

func TestFoldKeepsBlocksInOrder(t *testing.T) {
	s := fold(t,
		Delta{Kind: Head, Raw: []byte(`{"id":"msg_1"}`)},
		Delta{Kind: Head, Raw: []byte(`{"id":"msg_2"}`)},
		open(0, Reasoning, "", ""), text(0, "hm"), sign(0, "ab"), sign(0, "cd"), shut(0),
		open(1, Prose, "", ""), text(1, "a\\u00e9"), text(1, `\n`), Delta{Kind: Extra, Block: 1}, shut(1),
		open(2, Call, `call\/1`, "get"), text(2, `{\"a\":`), Delta{Kind: Pulse}, text(2, `1}`),
		Delta{Kind: Opaque}, Delta{Kind: Skip}, Delta{Kind: Fault, Fault: &WireFault{}},
		Delta{Kind: Count, Usage: Usage{Known: true, Input: 3, Output: 1, Raw: []byte("{1}")}},
		Delta{Kind: Count, Usage: Usage{Known: true, Input: 3, Output: 9, Raw: []byte("{2}")}},
		finish(0, ToolUse, `tool_use`), Delta{Kind: Terminal},
	)
	if string(s.Head) != `{"id":"msg_1"}` {
		t.Errorf("head %s: the first one identifies the message", s.Head)
	}
	if b := s.Blocks[0]; b.Kind != Reasoning || string(b.Text) != "hm" || string(b.Signature) != "abcd" || !b.Closed {
		t.Errorf("reasoning %+v", b)
	}
	if b := s.Blocks[1]; string(b.Plain()) != "aé\n" || b.Extras != 1 {
		t.Errorf("prose %q, extras %d", b.Plain(), b.Extras)
	}
	if b := s.Blocks[2]; b.ID != "call/1" || !b.Complete() || string(b.Arguments()) != `{"a":1}` || !b.Closed {
		t.Errorf("call %+v, arguments %s", b, b.Arguments())
	}
	if s.Usage.Output != 9 || string(s.Usage.Raw) != "{2}" {
		t.Errorf("usage %+v: the last one wins", s.Usage)
	}
	if s.End() != (End{ToolUse, "tool_use"}) || !s.Finished() || !s.Terminated || s.Opaques != 1 {
		t.Errorf("end %+v, finished %v, terminated %v, opaques %d", s.End(), s.Finished(), s.Terminated, s.Opaques)
	}
	if s.Last() != &s.Blocks[2] || string(s.Prose()) != "aé\n" {
		t.Errorf("last %+v, prose %q", s.Last(), s.Prose())
	}
}

func TestFoldErrorsLeaveTheSnapshotUnchanged(t *testing.T) {
	for _, tc := range []struct {
		name string
		d    Delta
		want error
	}{
		{"block skipped", open(4, Prose, "", ""), ErrBlockOrder},
		{"block opened twice", open(0, Prose, "", ""), ErrBlockOrder},
		{"negative block opened", open(-1, Prose, "", ""), ErrBlockOrder},
		{"text without a block", text(3, "x"), ErrNoBlock},
		{"text in a negative block", text(-1, "x"), ErrNoBlock},
		{"signature without a block", sign(3, "x"), ErrNoBlock},
		{"extra without a block", Delta{Kind: Extra, Block: 3}, ErrNoBlock},
		{"close without a block", shut(3), ErrNoBlock},
		{"text after the close", text(0, "x"), ErrClosedBlock},
		{"signature on a call", sign(2, "x"), ErrNotSignable},
		{"signature on text", sign(1, "x"), ErrNotSignable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := fold(t, open(0, Reasoning, "", ""), shut(0), open(1, Prose, "", ""), text(1, "a"), open(2, Call, "i", "n"), text(2, "{"))
			before := s.Clone()
			if err := s.Fold(tc.d); !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
			if !reflect.DeepEqual(s, before) {
				t.Errorf("changed to %+v\nfrom %+v", s, before)
			}
		})
	}
}

func TestFoldOwnsWhatItKeeps(t *testing.T) {
	buf := []byte("abcdefgh")
	s := &Snapshot{}
	for _, d := range []Delta{
		{Kind: Head, Raw: buf},
		{Kind: Open, Of: Redacted, ID: buf, Name: buf, Raw: buf, Text: buf},
		{Kind: Text, Text: buf},
		{Kind: Count, Usage: Usage{Known: true, Raw: buf}},
		{Kind: Finish, Why: Stopped, Text: buf},
	} {
		if err := s.Fold(d); err != nil {
			t.Fatal(err)
		}
	}
	before := s.Clone()
	clear(buf)
	if !reflect.DeepEqual(s, before) {
		t.Errorf("the snapshot aliases its event: %+v", s)
	}
}

// The parts of one reused delta slice and of a clone must not reach each other.
func TestCloneIsDeep(t *testing.T) {
	s := fold(t, Delta{Kind: Head, Raw: []byte("h")}, open(0, Prose, "", ""), text(0, "a"), shut(0), open(1, Call, "i", "n"), text(1, `{\"a\":[`))
	c := s.Clone()
	if !reflect.DeepEqual(s, c) {
		t.Fatalf("clone %+v of %+v", c, s)
	}
	if err := c.Fold(text(1, `1]}`)); err != nil {
		t.Fatal(err)
	}
	c.Blocks[0].Text[0] = 'z'
	c.Head[0] = 'z'
	if s.Blocks[1].Complete() || !c.Blocks[1].Complete() || string(s.Blocks[0].Text) != "a" || string(s.Head) != "h" {
		t.Errorf("clone shares memory: %+v", s)
	}
}

func TestFinishClosesItsChoiceUnlessTheProviderBroke(t *testing.T) {
	s := fold(t, open(0, Prose, "", ""),
		Delta{Kind: Open, Block: 1, Of: Prose, Choice: 1}, finish(1, Length, "length"))
	if s.Blocks[0].Closed || !s.Blocks[1].Closed {
		t.Errorf("closed: %v %v", s.Blocks[0].Closed, s.Blocks[1].Closed)
	}
	if s.Finished() {
		t.Error("finished with choice 0 open (FIELD-REPORTS D25)")
	}
	if err := s.Fold(finish(0, Broken, "error")); err != nil {
		t.Fatal(err)
	}
	if s.Blocks[0].Closed {
		t.Error("a provider failure closed a block")
	}
}

func TestNothingSaidIsNotFinished(t *testing.T) {
	if s := (&Snapshot{}); s.Finished() || s.End() != (End{}) || s.Last() != nil || s.NextIndex(false) != 0 || s.EstimateTokens() != 0 {
		t.Errorf("empty snapshot: %+v", s)
	}
}

func TestHostileChoiceIndexIsBounded(t *testing.T) {
	s := fold(t, Delta{Kind: Open, Of: Prose, Choice: 1 << 40}, finish(1<<40, Stopped, "stop"))
	if len(s.Ends) > MaxChoices {
		t.Errorf("%d ends", len(s.Ends))
	}
}

func TestTruncateForgetsBlocksAndEnds(t *testing.T) {
	s := fold(t, open(0, Reasoning, "", ""), text(0, "hm"), sign(0, "half"),
		open(1, Call, "i", "n"), finish(0, ToolUse, "tool_use"), Delta{Kind: Terminal})
	s.Blocks[0].Closed = false
	s.Truncate(1)
	if len(s.Blocks) != 1 || s.Finished() || s.Terminated || s.Blocks[0].Signature != nil {
		t.Errorf("left: %+v", s)
	}
	if err := s.Fold(open(1, Prose, "", "")); err != nil {
		t.Errorf("next block: %v", err)
	}
}

func TestNextIndexCountsWhatTheWireCounts(t *testing.T) {
	s := fold(t, open(0, Prose, "", ""), Delta{Kind: Open, Block: 1, Of: Call, Index: 0}, Delta{Kind: Open, Block: 2, Of: CustomCall, Index: 4})
	if got := s.NextIndex(true); got != 5 {
		t.Errorf("among calls: %d, want 5", got)
	}
	if got := s.NextIndex(false); got != 5 {
		t.Errorf("among blocks: %d, want 5", got)
	}
	s.Truncate(1)
	if got := s.NextIndex(true); got != 0 {
		t.Errorf("no calls: %d", got)
	}
}

func TestEstimateIsLowAndCountsEscapesOnce(t *testing.T) {
	s := fold(t, open(0, Prose, "", ""), text(0, `\n\n\n\nabcd`), open(1, Call, "i", "n"), text(1, `{\"a\":1}`))
	if got := s.EstimateTokens(); got != (8+7)/4 {
		t.Errorf("got %d", got)
	}
}

func TestNamesOfEnums(t *testing.T) {
	if Opaque.String() != "opaque" || (Opaque+1).String() != "kind?" || Unknown.String() != "unknown" || (Unknown+1).String() != "block?" ||
		OtherEnd.String() != "other" || (OtherEnd+1).String() != "why?" || Asked.String() != "asked" || (Asked+1).String() != "manner?" {
		t.Error("an enum and its names disagree")
	}
}

func TestFoldOfTextDoesNotAllocate(t *testing.T) {
	s := fold(t, open(0, Call, "i", "n"))
	s.Blocks[0].Text = make([]byte, 0, 1<<20)
	d := text(0, `[1,2,\"abc\"],`)
	if n := testing.AllocsPerRun(1000, func() {
		if err := s.Fold(d); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkFold(b *testing.B) {
	s := &Snapshot{}
	if err := s.Fold(Delta{Kind: Open, Of: Prose}); err != nil {
		b.Fatal(err)
	}
	d := text(0, " twelve bytes")
	b.ReportAllocs()
	b.SetBytes(int64(len(d.Text)))
	for b.Loop() {
		if len(s.Blocks[0].Text) > 1<<20 {
			s.Blocks[0].Text = s.Blocks[0].Text[:0]
		}
		if err := s.Fold(d); err != nil {
			b.Fatal(err)
		}
	}
}
