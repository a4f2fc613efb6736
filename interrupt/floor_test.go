package interrupt

import (
	"testing"
	"time"
)

// A stream that drips satisfies every clock of silence; what it does not satisfy
// is a floor. Waiting and reasoning are silent rightly and are not measured.
func TestFloorTellsADripFromAStream(t *testing.T) {
	limits := Config{Floor: 10, FloorSpan: 20 * sec}
	for _, tc := range []struct {
		name  string
		limit Config
		each  int // bytes of text a second
		phase Phase
		fires int // seconds since the text began; 0: not within five minutes
	}{
		{"as fast as the floor", limits, 10, Speaking, 0},
		{"a little slower", limits, 9, Speaking, 20},
		{"slow, but it reasons", limits, 1, Quiet, 0},
		{"slow, and nobody minds", Config{}, 1, Speaking, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := NewWatch(tc.limit, Call{}, noon)
			w.Opened(noon)
			w.Visible()
			fired := 0
			for s := 0; s < 300 && fired == 0; s++ {
				now := noon.Add(time.Duration(s) * sec)
				if c := w.Check(now); c.Kind == IdleStall && c.Type == "slow_drip" {
					fired = s
				}
				w.Progress(now)
				w.Phase(tc.phase)
				w.Said(tc.each)
			}
			if fired != tc.fires {
				t.Errorf("fired after %d s, want %d", fired, tc.fires)
			}
		})
	}
}
