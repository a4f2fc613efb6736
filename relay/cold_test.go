package relay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/relay"
)

// crowd is how many streams take turns in BenchmarkPassTextCold: together they are larger
// than the caches of a core, as the streams of a busy proxy are, so that each event finds
// its stream's data evicted. What counts there is how many cache lines an event touches.
const crowd = 2000

// spoken are streams of w that pass text, and an event of ordinary size of each family.
func spoken(tb testing.TB, w wire, n int, now time.Time) (streams []*relay.Stream, event []byte) {
	const chunk = `data: {"id":"one","object":"chat.completion.chunk","created":1800000000,"model":"gpt-4o-mini-2024-07-18",` +
		`"service_tier":"default","system_fingerprint":"fp_50906f2aac","choices":[{"index":0,"delta":{"content":" world,"},` +
		`"logprobs":null,"finish_reason":null}],"obfuscation":"pdFK9PZ"}` + "\n\n"
	if event = []byte(chunk); w.name != chatWire.name {
		event = []byte(w.text("one", " world,"))
	}
	c := relay.Config{Targets: []relay.Target{{Ability: prefilling}}}
	req := []byte(w.request)
	for range n {
		s, _ := relay.New(c, w.d, mustParse(w.d, req), nil, now)
		s.Step(now, relay.Opened{Attempt: 1, Status: 200, Header: refusal(200, "")})
		for _, b := range [...]string{w.begin("one") + w.text("one", strings.Repeat("Hello", 20)), string(event), string(event)} {
			s.Feed(now, 1, []byte(b))
		}
		streams = append(streams, s)
	}
	return streams, event
}

// BenchmarkPassTextCold is what an event costs of one stream among many, each of which
// gets one every 20 ms and has its checkpoint written when that is due.
func BenchmarkPassTextCold(b *testing.B) {
	for _, w := range wires {
		for _, n := range [...]int{1, crowd} {
			b.Run(fmt.Sprintf("%s/%d", w.name, n), func(b *testing.B) {
				now := time.Unix(1_800_000_000, 0)
				streams, event := spoken(b, w, n, now)
				b.ReportAllocs()
				turns, at := 0, 0
				for b.Loop() {
					if at == 0 {
						now = now.Add(20 * time.Millisecond)
						if turns++; turns%4000 == 0 { // a turn has an end
							b.StopTimer()
							streams, _ = spoken(b, w, n, now)
							b.StartTimer()
						}
					}
					s := streams[at]
					if fx := s.Feed(now, 1, event); len(fx.Client) == 0 {
						b.Fatal("text was held back")
					}
					if s.Deadline().IsZero() { // the driver asks before each read
						b.Fatal("a live stream has a deadline")
					}
					if at++; at == len(streams) {
						at = 0
					}
				}
			})
		}
	}
}
