package relay

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/turn"
)

// same is what a client has of a generation that is told again from its start, to
// somebody who followed the turn and carries it on: block by block, as the generation
// counts them.
type same struct {
	kinds []turn.BlockKind
	// place is the block of said, -1: the client does not have it yet; nothing: it
	// says nothing that a client could be told.
	place []int
	// had is how much of its text the client has, told how much was told again; in
	// bytes of the escaped body.
	had, told []int
	// shut: the client has the end of it.
	shut []bool
}

// samePlaces is the beginning of such a hop.
func (f *Follower) samePlaces() *same {
	m := &same{place: append([]int(nil), f.place...)}
	for i := range f.src.Blocks {
		m.kinds = append(m.kinds, f.src.Blocks[i].Kind)
		n, shut := 0, false
		if at := f.place[i]; at >= 0 {
			n, shut = len(f.said.Blocks[at].Text), f.said.Blocks[at].Closed
		}
		m.had, m.shut = append(m.had, n), append(m.shut, shut)
	}
	m.told = make([]int, len(m.had))
	return m
}

// opens places the next block of the generation, if the client is past its beginning.
// It reports whether d is settled; wrong: the client has something else there.
func (m *same) opens(s *Stream, d *turn.Delta) (settled, wrong bool) {
	n := len(s.hop.place)
	if n >= len(m.kinds) {
		return false, false
	}
	at := m.place[n]
	switch {
	case m.kinds[n] != d.Of:
		return true, true
	case at == nothing:
		s.hop.place = append(s.hop.place, -1)
		d.Kind = turn.Skip
		return true, false
	case at < 0:
		return false, false
	}
	s.hop.place = append(s.hop.place, at)
	if d.Kind = turn.Skip; len(d.Text) > 0 {
		d.Kind, d.Block = turn.Text, n
		wrong = m.text(s, d)
		d.Block = at
	}
	return true, wrong
}

// text takes out of a text what the client has of its block.
func (m *same) text(s *Stream, d *turn.Delta) (wrong bool) {
	n := d.Block
	if n < 0 || n >= len(m.had) || m.place[n] < 0 {
		return false
	}
	from := m.told[n]
	m.told[n] += len(d.Text)
	if again := min(len(d.Text), m.had[n]-from); again > 0 {
		if !bytes.Equal(d.Text[:again], s.said.Blocks[m.place[n]].Text[from:from+again]) {
			return true
		}
		d.Text = d.Text[again:]
	}
	if len(d.Text) == 0 {
		d.Kind = turn.Skip
	}
	return false
}

// past reports whether the client is past what is said of block n now.
func (m *same) past(n int) bool {
	return n >= 0 && n < len(m.had) && (m.told[n] < m.had[n] || m.shut[n])
}

// whole reports whether everything that the client has was told again.
func (m *same) whole() bool {
	for n := range m.had {
		if m.told[n] < m.had[n] {
			return false
		}
	}
	return true
}
