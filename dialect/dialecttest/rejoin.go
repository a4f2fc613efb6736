package dialecttest

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Rejoin plays the plainest recovery: the client received the units before, then
// an attempt that says the whole turn again arrives as again. It edits the
// deltas as relay does (DESIGN §3: heads consumed, what was said cut away,
// nothing opened, closed or finished twice) and returns what the client reads.
func Rejoin(d dialect.Dialect, req *dialect.Request, before, again []sse.Event) ([]byte, error) {
	var client []byte
	deltas, err := Decode(d, req, before)
	if err != nil {
		return nil, err
	}
	said, err := Fold(deltas)
	if err != nil {
		return nil, err
	}
	for _, e := range before {
		client = append(client, e.Raw...)
	}
	e := editor{was: said.Clone(), text: make([]int, len(said.Blocks)), sign: make([]int, len(said.Blocks)),
		extras: make([]int, len(said.Blocks)), opaques: said.Opaques}
	dec := d.NewDecoder(req)
	for _, u := range again {
		ds, err := dec.Decode(nil, u)
		if err != nil {
			return nil, err
		}
		for i := range ds {
			e.edit(&ds[i])
		}
		client = d.Rewrite(client, req, u, ds, said)
		if err := foldInto(said, [][]turn.Delta{ds}); err != nil {
			return nil, err
		}
	}
	return client, nil
}

// editor takes out of a repeated turn what the client already has.
type editor struct {
	was        *turn.Snapshot
	text, sign []int // bytes of each block said again so far
	extras     []int
	opaques    int
}

func (e *editor) edit(d *turn.Delta) {
	old := d.Block < len(e.was.Blocks)
	switch d.Kind {
	case turn.Head:
		e.skip(d, e.was.Head != nil)
	case turn.Open:
		if old {
			e.text[d.Block] += len(d.Text)
			e.skip(d, true)
		}
	case turn.Text:
		if old {
			e.cut(d, e.text, len(e.was.Blocks[d.Block].Text))
		}
	case turn.Sign:
		if old {
			e.cut(d, e.sign, len(e.was.Blocks[d.Block].Signature))
		}
	case turn.Extra:
		if old && e.extras[d.Block] < e.was.Blocks[d.Block].Extras {
			e.extras[d.Block]++
			e.skip(d, true)
		}
	case turn.Close:
		e.skip(d, old && e.was.Blocks[d.Block].Closed)
	case turn.Finish:
		e.skip(d, d.Choice < len(e.was.Ends) && e.was.Ends[d.Choice].Why != turn.Unfinished)
	case turn.Terminal:
		e.skip(d, e.was.Terminated)
	case turn.Opaque:
		e.skip(d, e.opaques > 0)
		e.opaques--
	}
}

func (e *editor) skip(d *turn.Delta, yes bool) {
	if yes {
		d.Kind = turn.Skip
	}
}

func (e *editor) cut(d *turn.Delta, again []int, said int) {
	n := min(len(d.Text), said-again[d.Block])
	if n <= 0 {
		return
	}
	again[d.Block] += n
	if d.Text = d.Text[n:]; len(d.Text) == 0 {
		d.Kind = turn.Skip
	}
}

// renamed returns the units under another message id.
func renamed(d dialect.Dialect, stream []byte, id string) []sse.Event {
	return UnitsOf(d, bytes.ReplaceAll(stream, []byte(id), []byte(otherID)))
}

const otherID = "id-of-the-later-attempt"
