package splice

import (
	"strings"
	"testing"
)

// held feeds text byte by byte and returns how many bytes it took to decide.
func held(c Config, text string) (int, Verdict) {
	s := New(c)
	for i := range len(text) {
		if v := s.Push([]byte{text[i]}); v.State != Holding {
			return i + 1, v
		}
	}
	return len(text), s.End()
}

// The head is held only while more than one reading is alive: these are the bytes it takes in the ordinary cases.
func TestBytesHeldUntilDecided(t *testing.T) {
	for _, c := range []struct {
		name string
		c    Config
		text string
		want int
	}{
		{"prefill goes on", prefill(story), "place and sang", 3}, // "pl" stands in the story, so it may be a tail yet.
		{"prefill goes on behind a space", prefill(story), " and sang", 2},
		{"prefill goes on in a new line", prefill(story + ".\n\n"), "Then", 1},
		{"prefill goes on in unspaced script", prefill("今天天气很好"), "，我们", 3},
		{"anchor", asked(story), story[89:] + " and sang", 44 + 2},
		{"anchor in the word", asked(story), story[89:] + "place", 44 + 1},
		{"echo of all", echoing(story), story + " and", len(story)},
		{"asked, white space first", asked(story), " zzz", 2},
		{"asked, glued", asked(story), "zzz", 1},
		{"letters like the sentinel's and a preamble's", asked(story), " Nobody", 4}, // "no problem"
		{"letters like a preamble's", asked(story + "\n\n"), "Some", 3},              // "sorry"
	} {
		t.Run(c.name, func(t *testing.T) {
			if n, v := held(c.c, c.text); n != c.want {
				t.Errorf("decided after %d bytes, want %d: %+v", n, c.want, v)
			}
			s := New(c.c)
			if s.Push([]byte(c.text)); s.Held() != c.want {
				t.Errorf("in one piece: %d bytes held, want %d", s.Held(), c.want)
			}
		})
	}
}

func TestAfterTheDecisionNothingChangesIt(t *testing.T) {
	s := New(prefill(fox))
	joined := s.Push([]byte(" jumps"))
	if joined.State != Joined || s.Push([]byte(fox)) != joined || s.End() != joined {
		t.Errorf("joined: %+v", joined)
	}
	s = New(asked(fox))
	failed := s.Push([]byte("x"))
	if failed.State != Failed || s.Push([]byte(fox)) != failed || s.End() != failed {
		t.Errorf("failed: %+v", failed)
	}
}

func TestHoldingIsBounded(t *testing.T) {
	blank := strings.Repeat(" \n", 5_000)
	for name, c := range map[string]struct {
		c      Config
		text   string
		reason string
		within int
	}{
		"white space, asked":                  {asked(story), blank, TooLong, DefaultWindow + 1},
		"white space behind an anchor":        {asked(story), story[89:] + blank, TooLong, DefaultWindow + 50},
		"white space, own window":             {Config{Said: []byte(story), Manner: Asked, Window: 100}, blank, TooLong, 101},
		"white space, prefill":                {prefill(story), blank, "", DefaultWindow + 1},
		"white space in the middle of a tail": {asked(story), "every evening" + blank, Unanchored, spaceRun + 20},
		"marks before the sentinel":           {asked(story), " " + strings.Repeat("-", 9_000), "", 100},
		"a preamble that does not end":        {asked(story), "Sure! Here is the rest of " + strings.Repeat("it ", 4_000), Talk, talkWindow + 10},
	} {
		t.Run(name, func(t *testing.T) {
			n, v := held(c.c, c.text)
			if v.Reason != c.reason || n > c.within {
				t.Errorf("after %d bytes (at most %d): %+v, want %q", n, c.within, v, c.reason)
			}
		})
	}
}

// An answer of 300 KiB that is said again is followed to its end and not kept.
func TestAWholeAnswerOfAnyLength(t *testing.T) {
	var b strings.Builder
	for i := 0; b.Len() < 300<<10; i++ {
		b.WriteString("Line ")
		b.WriteString(strings.Repeat("abcdefg"[i%7:i%7+1], i%13+1))
		b.WriteString(string(rune('a' + i%26)))
		b.WriteString(string(rune('a' + i/26%26)))
		b.WriteString(string(rune('a' + i/676%26)))
		b.WriteString(string(rune('a' + i/17576%26)))
		b.WriteByte('\n')
	}
	said := b.String() + "The end"
	for _, c := range []Config{prefill(said), asked(said), echoing(said)} {
		s := New(c)
		text := said + " of it"
		most := 0
		for i := 0; i < len(text); i += 4096 {
			s.Push([]byte(text[i:min(i+4096, len(text))]))
			most = max(most, cap(s.recent))
		}
		if got := outcome(c, text, s.End()); got != "whole: "+said+" of it" {
			t.Errorf("%v: %.80s", c.Manner, got)
		}
		if most > 64<<10 {
			t.Errorf("%v: %d bytes of a repetition were kept", c.Manner, most)
		}
	}
}

func BenchmarkNewOnFiveMegabytes(b *testing.B) {
	c := asked(strings.Repeat(story+".\n", 5<<20/len(story)))
	for b.Loop() {
		New(c)
	}
}

// The worst a tail search can be given: one letter, so that every place of the window stays possible.
func BenchmarkTailOfOneLetter(b *testing.B) {
	said := strings.Repeat("a", 64<<10)
	text := []byte(strings.Repeat("a", 15<<10) + "b")
	c := plain("b" + said)
	for b.Loop() {
		New(c).Push(text)
	}
}
