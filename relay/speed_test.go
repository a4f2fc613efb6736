package relay_test

import (
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/relay"
)

// steady is a stream that is passing text, and one more event of it.
func steady(tb testing.TB, w wire) (step func()) {
	c := relay.Config{Targets: []relay.Target{{Ability: prefilling}}}
	now := time.Unix(1_800_000_000, 0)
	s, _ := relay.New(c, w.d, mustParse(w.d, []byte(w.request)), nil, now)
	s.Step(now, relay.Opened{Attempt: 1, Status: 200, Header: refusal(200, "")})
	s.Step(now, relay.Chunk{Attempt: 1, Bytes: []byte(w.begin("one") + w.text("one", "Hello"))})
	// A boxed input is the driver's to reuse: converting it per read would
	// allocate outside of the machine.
	var next relay.Input = relay.Chunk{Attempt: 1, Bytes: []byte(w.text("one", " world,"))}
	return func() {
		now = now.Add(time.Millisecond)
		if fx := s.Step(now, next); len(fx.Client) == 0 {
			tb.Fatal("text was held back")
		}
	}
}

// TestPassingTextDoesNotAllocate: the price of an uninterrupted stream is paid per
// event, so it is nothing beyond the growth of what is kept, checkpoints included.
func TestPassingTextDoesNotAllocate(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		step := steady(t, w)
		for range 1000 {
			step()
		}
		if n := testing.AllocsPerRun(2000, step); n != 0 {
			t.Errorf("%v allocations per event", n)
		}
	})
}

func BenchmarkPassText(b *testing.B) {
	for _, w := range wires {
		b.Run(w.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(w.text("one", " world,"))))
			step := steady(b, w)
			n := 0
			for b.Loop() {
				if n++; n%100_000 == 0 {
					step = steady(b, w) // a turn has an end
				}
				step()
			}
		})
	}
}
