package statuspage

import (
	"time"

	"github.com/unbroken-llm/unbroken/proxy"
)

const (
	// tick is how finely the past is remembered, ticks for how long.
	tick  = 10 * time.Second
	ticks = 360
)

// Tick is what happened in ten seconds.
type Tick struct {
	At int64 `json:"at"` // its beginning, Unix seconds
	// Streams that ended: as the provider meant them, healed, and not well; Other
	// ends were the client's doing or a provider's final word.
	Clean  int `json:"clean"`
	Healed int `json:"healed"`
	Failed int `json:"failed"`
	Other  int `json:"other"`

	Interruptions int   `json:"interruptions"`
	Live          int   `json:"live"`   // most at a time
	GapMS         int64 `json:"gap_ms"` // the longest that a client saw nothing
}

// history is the last hour.
type history struct {
	all  [ticks]Tick // by tick number, modulo
	last int64       // number of the newest; 0: none
}

// at returns the tick of a moment, in which live streams were seen. What is older
// than the newest counts into that: streams' notes carry their own times, which may
// be a little late.
func (h *history) at(t time.Time, live int) *Tick {
	n := t.Unix() / int64(tick/time.Second)
	if h.last == 0 || n-h.last > ticks {
		h.last = n - 1 // nothing that far back is remembered
		h.all = [ticks]Tick{}
	}
	for ; h.last < n; h.last++ {
		next := h.last + 1
		h.all[next%ticks] = Tick{At: next * int64(tick/time.Second), Live: live}
	}
	k := &h.all[h.last%ticks]
	k.Live = max(k.Live, live)
	return k
}

func (k *Tick) gap(d time.Duration) { k.GapMS = max(k.GapMS, d.Milliseconds()) }

func (k *Tick) ended(w proxy.Whose, healed bool) {
	switch {
	case healed:
		k.Healed++
	case w == proxy.Completed:
		k.Clean++
	case w == proxy.Us, w == proxy.Provider:
		k.Failed++
	default:
		k.Other++
	}
}

// since are the ticks that began at from (Unix seconds) or later, the oldest first.
func (h *history) since(from int64) (some []Tick) {
	for n := h.last - ticks + 1; n <= h.last; n++ {
		if k := h.all[(n%ticks+ticks)%ticks]; k.At >= max(from, 1) {
			some = append(some, k)
		}
	}
	return some
}
