package dialect

import "github.com/unbroken-llm/unbroken/turn"

// KeepLimit bounds what a turn keeps of one attempt beside its text, in bytes: as much
// as a picture or the probabilities of some thousand tokens, and not as much as a
// minute of sound.
const KeepLimit = 1 << 20

// Keeping counts what was kept of an attempt. The zero value has kept nothing.
type Keeping struct{ used int }

// Keep makes x an extra whose Raw is kept among its block's notes, so that whoever is
// told the turn again is told of it. What does not fit is not kept, and the block says
// so: see [turn.Untold].
func (k *Keeping) Keep(x *turn.Delta, raw []byte) {
	if len(raw) > KeepLimit-k.used {
		x.Stage |= turn.Untold
		return
	}
	k.used += len(raw)
	x.Keep, x.Raw = true, raw
}
