package gemini

import (
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

var (
	_ dialect.Checkpointer = Dialect{}
	_ dialect.Checkpointer = Array{}
	_ dialect.Resumer      = (*Decoder)(nil)
	_ dialect.Resumer      = (*arrayDecoder)(nil)
)

// Behind implements dialect.Checkpointer: the answer text behind the newest token. A
// complete call is not generated twice; nor are thoughts and parts that the client
// has and nothing here could find again.
func (grammar) Behind(said *turn.Snapshot) (text []byte, ok bool) {
	at := lastCheckpoint(said)
	if at < 0 {
		return nil, false
	}
	for n := range said.Blocks {
		switch b := &said.Blocks[n]; {
		case b.Choice != 0, b.IsCall() && b.Live() && b.Complete():
			return nil, false
		case n <= at || !b.Live() || b.IsCall():
		case b.Kind != turn.Prose:
			return nil, false
		case b.Raw == nil:
			text = jsonwalk.Unescape(text, b.Text)
		}
	}
	return text, true
}

// Resumed implements dialect.Resumer. The tokens of a stream that goes on from one are
// good for the same request as that one was, whatever responseId comes with them.
func (d *Decoder) Resumed(said *turn.Snapshot) {
	d.resumed = true
	if id := identify(said.Head)[identityIndex([]byte("responseId"))]; id != nil {
		d.id = append([]byte(nil), id...)
	}
}
