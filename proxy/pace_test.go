package proxy

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/internal/golden"
)

// TestPace plays testdata/pace.txt. A line is
//
//	words => what the pace says
//
// and -rewrite writes what stands behind the arrow. Lines that begin with # tell the
// story.
//
//	start                     a new upstream, at 0 s
//	RATE for DURATION         clients ask RATE times a second, evenly, and are answered
//	RATE failing for DURATION they ask, and are not
//	silence for DURATION
//	cut                       a stream breaks off, or a connection that many shared
//	again N                   N repetitions want to go out now; those that may not stand in line
//	answered N                N of those under way are, and the line moves up as it may
//	failed N                  N of those under way have, and want to go out again
//	line for DURATION         the line moves up as it may
//	rush N                    N clients ask at once
func TestPace(t *testing.T) {
	const path = "testdata/pace.txt"
	var out bytes.Buffer
	p := &pacing{}
	for line := range strings.Lines(string(golden.Read(t, path))) {
		left, _, _ := strings.Cut(strings.TrimRight(line, "\n"), " => ")
		if left == "" || left[0] == '#' {
			out.WriteString(line)
			continue
		}
		fmt.Fprintf(&out, "%s => %s\n", left, p.play(t, left))
	}
	golden.Compare(t, path, out.Bytes())
}

// pacing is a pace with a line in front of it.
type pacing struct {
	p            pace
	now          time.Duration
	line, flying int
}

func (s *pacing) play(t *testing.T, text string) string {
	w := strings.Fields(text)
	span := func() time.Duration {
		d, err := time.ParseDuration(w[len(w)-1])
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return d
	}
	count := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return n
	}
	switch w[0] {
	case "start":
		*s = pacing{}
	case "silence":
		s.now += span()
	case "rush":
		for range count(w[1]) {
			s.p.first(s.now)
		}
	case "cut":
		s.p.trouble(s.now)
	case "again":
		s.line += count(w[1])
		return s.move(0)
	case "answered":
		for range count(w[1]) {
			s.flying--
			s.p.mended(s.now)
		}
		return s.move(0)
	case "failed":
		for range count(w[1]) {
			s.flying--
			s.line++
			s.p.trouble(s.now)
		}
		return s.move(0)
	case "line":
		return s.move(span())
	default:
		every := time.Second / time.Duration(count(w[0]))
		for end := s.now + span(); s.now < end; s.now += every {
			s.p.first(s.now)
			if w[1] == "failing" {
				s.p.trouble(s.now)
			} else {
				s.p.good(s.now)
			}
		}
	}
	s.p.roll(s.now)
	return fmt.Sprintf("at %v; healthy %.1f/s", s.now.Round(time.Millisecond), s.p.healthy())
}

// move lets the line move up for a time.
func (s *pacing) move(d time.Duration) string {
	went, end := 0, s.now+d
	for {
		wait := time.Duration(0)
		for s.line > 0 {
			if wait = s.p.again(s.now, s.flying); wait > 0 {
				break
			}
			s.line--
			s.flying++
			went++
		}
		if s.line == 0 || s.now+wait > end {
			if s.now = end; s.line+s.flying == 0 {
				s.p.rest(s.now)
			}
			return fmt.Sprintf("%d went; %d in line", went, s.line)
		}
		s.now += wait
	}
}

// Whatever happens, what an upstream in trouble is asked in any second is at most 1.5
// times its healthy rate or the floor, or what its clients ask themselves and a quarter
// of the healthy rate; and whoever waits as long as told is let out, unless that rate fell.
func TestPaceKeepsItsLaw(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 9))
		p := pace{wary: true}
		const many = 1 << 20 // under way: none is free of the pace
		var now time.Duration
		var all, again []time.Duration // when what went out
		lately := func(of []time.Duration) (n int) {
			for _, at := range of {
				if now-at < time.Second {
					n++
				}
			}
			return n
		}
		rate := rng.IntN(200) + 1
		for range 2000 {
			switch op := rng.IntN(10); {
			case op < 4:
				p.first(now)
				all = append(all, now)
			case op < 6:
				p.good(now)
			case op < 7:
				p.trouble(now)
			case op < 9:
				wait := p.again(now, many)
				healthy := p.healthy()
				if wait < 0 || wait > 1100*time.Millisecond {
					t.Fatalf("seed %d: wait %v", seed, wait)
				}
				if wait > 0 {
					if rng.IntN(2) > 0 {
						break
					}
					now += wait
					before := healthy
					held := p.again(now, many) > 0
					if healthy = p.healthy(); held {
						if healthy >= before {
							t.Fatalf("seed %d: told to come back after %v, and held back again", seed, wait)
						}
						break // what was healthy has changed meanwhile
					}
				}
				all, again = append(all, now), append(again, now)
				if n, m := lately(all), lately(again); n > max(paceFloor, int(healthy*1.5)) && m > max(1, int(healthy/4)) {
					t.Fatalf("seed %d: %d in a second, %d of them again, at a healthy rate of %.1f", seed, n, m, healthy)
				}
				if rng.IntN(4) == 0 { // nothing was sent after all
					p.unasked(now)
					all, again = all[:len(all)-1], again[:len(again)-1]
				}
			default:
				now += time.Duration(rng.IntN(int(2*time.Second) / rate))
			}
		}
	}
}

// One in ten turns is cut, each a failure, and mended at once. Two of them at the very beginning of
// a second were most of what was heard in it, and those that were cut with them stood in line for
// half a second, at a provider that was well.
func TestTwoFailuresAtTheBeginningOfASecondAreNoTrouble(t *testing.T) {
	var p pace
	at := func(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }
	for ms := 0; ms < 3000; ms += 20 {
		p.first(at(ms))
		p.good(at(ms))
	}
	p.trouble(at(3001))
	p.trouble(at(3002))
	for n := range stormFloor {
		if wait := p.again(at(3003), n); wait > 0 {
			t.Fatalf("repetition %d waits for %v", n, wait)
		}
	}

	// Nothing but failures is trouble, and soon.
	var n int
	for n = 0; !p.wary; n++ {
		p.trouble(at(3010 + n))
	}
	if n > 15 {
		t.Errorf("%d failures in a row and no trouble, behind a second with 50 answers", n)
	}

	// What was heard long ago says nothing of now.
	p = pace{}
	for ms := 0; ms < 1000; ms += 20 {
		p.good(at(ms))
	}
	p.trouble(at(9000))
	p.trouble(at(9001))
	if !p.wary {
		t.Error("two failures behind a silence are not all that was heard")
	}
}
