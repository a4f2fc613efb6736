package turn

import (
	"errors"
	"slices"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

// Fold errors. Each names one way a provider can break its own protocol; the
// token is what metrics count.
var (
	ErrBlockOrder  = errors.New("block_out_of_order")
	ErrNoBlock     = errors.New("delta_without_block")
	ErrClosedBlock = errors.New("delta_after_close")
	ErrNotSignable = errors.New("signature_outside_reasoning")
)

// Fold adds d to the snapshot. An error names a protocol violation and leaves
// the snapshot unchanged. Fold allocates only for growth of what it keeps.
func (s *Snapshot) Fold(d Delta) error {
	if err := s.fold(d); err != nil {
		return err
	}
	if d.Kind != Skip {
		s.Seq = max(s.Seq, d.Seq)
	}
	return nil
}

// GoOn adds m to the snapshot as [Snapshot.Fold] adds such a delta, and returns the
// block; nil, and nothing was added, if there is none that is open.
func (s *Snapshot) GoOn(m More) *Block {
	if m.Block < 0 || m.Block >= len(s.Blocks) {
		return nil
	}
	b := &s.Blocks[m.Block]
	if b.Closed {
		return nil
	}
	b.add(m.Text)
	b.Stage |= m.Stage
	return b
}

func (s *Snapshot) fold(d Delta) error {
	switch d.Kind {
	case Head:
		if s.Head == nil {
			s.Head = append(make([]byte, 0, len(d.Raw)), d.Raw...)
		}
	case Open:
		if d.Block != len(s.Blocks) {
			return ErrBlockOrder
		}
		s.open(d)
	case Text, Sign, Extra, Close:
		if d.Block < 0 || d.Block >= len(s.Blocks) {
			return ErrNoBlock
		}
		return s.Blocks[d.Block].fold(d)
	case Count:
		raw := append(s.Usage.Raw[:0], d.Usage.Raw...)
		s.Usage = d.Usage
		s.Usage.Raw = raw
	case Finish:
		s.finish(d)
	case Terminal:
		s.Terminated = true
	case Opaque:
		s.Opaques++
	case Skip, Pulse, Fault:
	}
	return nil
}

func (s *Snapshot) open(d Delta) {
	s.seen(d.Choice)
	b := Block{Kind: d.Of, Choice: d.Choice, Index: d.Index, Stage: d.Stage}
	b.ID = string(jsonwalk.Unescape(nil, d.ID))
	b.Name = string(jsonwalk.Unescape(nil, d.Name))
	if len(d.Raw) > 0 {
		b.Raw = append([]byte(nil), d.Raw...)
	}
	s.Blocks = append(s.Blocks, b)
	if len(d.Text) > 0 {
		s.Blocks[len(s.Blocks)-1].add(d.Text)
	}
}

func (b *Block) fold(d Delta) error {
	switch d.Kind {
	case Text:
		if b.Closed && len(d.Text) > 0 {
			return ErrClosedBlock
		}
		b.add(d.Text)
		b.Stage |= d.Stage
	case Sign:
		if b.Kind != Reasoning {
			return ErrNotSignable
		}
		b.Signature = append(b.Signature, d.Text...)
	case Extra:
		b.Stage |= d.Stage
		if d.Sum {
			b.Raw = append([]byte(nil), d.Raw...)
			return nil
		}
		b.Extras++
		if d.Keep {
			b.note(d.Raw)
		}
	case Close:
		b.Closed = true
		b.Stage |= d.Stage
		if len(d.Raw) > 0 {
			b.Raw = append([]byte(nil), d.Raw...)
		}
	}
	return nil
}

// note keeps a part that is not text.
func (b *Block) note(raw []byte) {
	if len(b.Notes) > 0 {
		b.Notes = append(b.Notes, ',')
	}
	b.Notes = append(b.Notes, raw...)
}

func (b *Block) add(text []byte) {
	b.Text = append(roomier(b.Text, len(text)), text...)
	if b.Kind == Call {
		b.argue(text)
	}
}

// doubled is the size up to which a growing text doubles its room, in bytes.
const doubled = 1 << 20

// roomier returns b with room for n more bytes. append makes room for a quarter more than
// there is, so that every byte of an answer of some KB would be copied about four times.
func roomier(b []byte, n int) []byte {
	if c := cap(b); len(b)+n > c && c >= 256 && c < doubled {
		return slices.Grow(b, max(n, 2*c-len(b)))
	}
	return b
}

// argue feeds arguments to the validator. Anything but white space behind the end
// of the document spoils the call: `{"p":1}{"p":2}` is two calls that a provider
// ran together (FIELD-REPORTS D18), and neither may run.
func (b *Block) argue(text []byte) {
	if b.spoiled {
		return
	}
	over := b.args.State() == jsonwalk.Complete
	used, st := b.args.PushBody(text)
	if over {
		used = 0
	}
	if st == jsonwalk.Complete && used < len(text) {
		for _, c := range jsonwalk.Unescape(nil, text[used:]) {
			if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
				b.spoiled = true
				return
			}
		}
	}
}

// Cut shortens the block's text to n bytes of its escaped body.
func (b *Block) Cut(n int) {
	if n >= len(b.Text) {
		return
	}
	b.Text = b.Text[:n]
	if b.Kind == Call {
		b.args, b.spoiled = jsonwalk.Prefix{}, false
		b.argue(b.Text)
	}
}

// seen makes sure that choice has its place among the ends. The bound keeps a
// hostile index from growing memory.
func (s *Snapshot) seen(choice int) {
	for len(s.Ends) <= choice && len(s.Ends) < MaxChoices {
		s.Ends = append(s.Ends, End{})
	}
}

// MaxChoices bounds choices[].index; OpenAI documents n ≤ 128.
const MaxChoices = 1024

func (s *Snapshot) finish(d Delta) {
	s.seen(d.Choice)
	if d.Choice < 0 || d.Choice >= len(s.Ends) {
		return
	}
	s.Ends[d.Choice] = End{Why: d.Why, Reason: string(jsonwalk.Unescape(nil, d.Text))}
	if d.Why == Broken {
		return
	}
	for i := range s.Blocks {
		if s.Blocks[i].Choice == d.Choice {
			s.Blocks[i].Closed = true
		}
	}
}
