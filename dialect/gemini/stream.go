package gemini

import (
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// streamed is a call whose arguments arrive in bits (Vertex,
// streamFunctionCallArguments). Its text is said when they are whole: until then
// the call is open and empty, and nothing could take it for a runnable one.
type streamed struct {
	block int
	args  arguments
}

// ring reads a functionCall part:
//
//	{name, args}                     a whole call
//	{name, willContinue}             opens one that is streamed
//	{partialArgs, willContinue}      goes on with it
//	{partialArgs} or {}              ends it; one recording has no end but this
//
// A name while another call is open is the next call.
func (d *Decoder) ring(l *lane, p *part, raw, data []byte) error {
	f := readCall(p.value)
	if f.malformed {
		return ErrMalformed
	}
	if l.call != nil && len(f.name) > 0 {
		d.hangUp(l, true)
	}
	if l.call == nil {
		if len(f.name) == 0 && len(f.id) == 0 && f.args == nil && f.partial == nil {
			return nil // an end marker of nothing
		}
		d.dial(l, &f, raw)
	}
	if f.args != nil {
		if body := jsonwalk.Escape(nil, f.args); len(body) > 0 {
			if f.goesOn || f.partial != nil {
				// Whole arguments and bits of them: nobody has documented
				// what that means together.
				l.call.args.lost = true
			} else {
				d.put(turn.Delta{Kind: turn.Text, Choice: l.index, Block: l.call.block, Text: body})
				d.put(turn.Delta{Kind: turn.Close, Choice: l.index, Block: l.call.block})
				l.call = nil
				return nil
			}
		}
	}
	if f.partial != nil {
		es := jsonwalk.Elements(f.partial)
		for a, ok := es.Next(); ok; a, ok = es.Next() {
			l.call.args.add(a)
		}
		if es.Err() != nil {
			return ErrMalformed
		}
		d.put(turn.Delta{Kind: turn.Extra, Choice: l.index, Block: l.call.block, Raw: data})
	}
	if !f.goesOn {
		// The provider said that nothing more comes, a string that was left
		// open or not.
		l.call.args.pending = false
		d.hangUp(l, true)
	}
	return nil
}

// dial opens a call.
func (d *Decoder) dial(l *lane, f *funcCall, raw []byte) {
	l.called = true
	n := d.begin(l, turn.Delta{Of: turn.Call, Index: d.calls, ID: f.id, Name: f.name, Raw: raw})
	d.calls++
	l.call = &streamed{block: n}
}

// hangUp ends the streamed call of a lane, if there is one. A call that is not
// done is not closed, except by the finish of its candidate, and what it has of
// arguments is then no whole document: an empty text would read as a call without
// any.
func (d *Decoder) hangUp(l *lane, done bool) {
	if l.call == nil {
		return
	}
	c := l.call
	l.call = nil
	done = done && !c.args.pending && !c.args.lost
	args := c.args.half()
	if done {
		args = c.args.whole()
	}
	d.put(turn.Delta{Kind: turn.Text, Choice: l.index, Block: c.block, Text: jsonwalk.Escape(nil, args)})
	if done {
		d.put(turn.Delta{Kind: turn.Close, Choice: l.index, Block: c.block})
	}
}
