package relay_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
)

// FIELD-REPORTS group C: SSE framing.

// bytewise is a reply whose every byte is a read of its own.
func bytewise(stream string) relaytest.Reply {
	r := relaytest.Reply{}
	for i := range len(stream) {
		r.Chunks = append(r.Chunks, []byte{stream[i]})
	}
	return r
}

// C1: line scanners with a limit of 64 KB, 1, 4, 32 MB lose an event and the
// stream with it.
func TestC1AnEventOfFiveMegabytes(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		huge := strings.Repeat("0123456789abcdef", 5<<20/16)
		all := w.begin("one") + w.text("one", "A") + w.text("one", huge) + w.end("one")
		p := w.play(t, body(split(all, 32<<10)...)).hits(1).planned()
		if string(p.Body) != all {
			t.Errorf("%d bytes, want %d, unchanged", len(p.Body), len(all))
		}
		// And across a splice.
		p = w.play(t, rst(w.begin("one")+w.text("one", "A")), fin(w.begin("two")+w.text("two", huge)+w.end("two"))).hits(2)
		p.message("A"+huge, w.stop)
	})
}

func split(s string, n int) []string {
	var out []string
	for len(s) > n {
		out, s = append(out, s[:n]), s[n:]
	}
	return append(out, s)
}

// C3: an Azure-hosted model ends lines in CRLF; a parser that waits for \n\n
// buffers all and yields nothing.
func TestC3CRLF(t *testing.T) {
	crlf := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
	each(t, func(t *testing.T, w wire) {
		all := crlf(w.begin("one") + w.text("one", "AB") + w.end("one"))
		w.play(t, fin(all)).hits(1).exactly(all)
		w.play(t, bytewise(all)).hits(1).exactly(all)

		s := run(t, w, relay.Config{})
		s.open(200)
		s.feed(crlf(w.begin("one")))
		if s.feed(crlf(w.text("one", "AB"))); s.got != crlf(w.begin("one")+w.text("one", "AB")) {
			t.Errorf("not delivered as it came: %q", s.got)
		}
		cut := crlf(w.begin("one") + w.text("one", "AB"))
		w.play(t, fin(cut+"data: {\r"), fin(crlf(w.begin("two")+w.text("two", "CD")+w.end("two")))).hits(2).message("ABCD", w.stop)
	})
}

// C4: at most one space is stripped behind data:.
func TestC4DataWithoutTheSpace(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		for _, lead := range []string{"data:", "data:  "} {
			again := func(s string) string { return strings.ReplaceAll(s, "data: {", lead+"{") }
			all := again(w.begin("one") + w.text("one", "AB") + w.end("one"))
			w.play(t, fin(all)).hits(1).exactly(all)
			w.play(t, rst(again(w.begin("one")+w.text("one", "AB"))), fin(again(w.begin("two")+w.text("two", "CD")+w.end("two")))).
				hits(2).message("ABCD", w.stop)
		}
	})
}

// C5: a payload over several data lines: reading the first or the last alone loses
// the usage, or the terminal.
func TestC5SeveralDataLines(t *testing.T) {
	spread := func(s string) string { return strings.ReplaceAll(s, `,"`, ",\ndata: \"") }
	each(t, func(t *testing.T, w wire) {
		all := spread(w.begin("one") + w.text("one", "AB") + w.end("one"))
		if w.name == "messages" {
			all = strings.TrimSuffix(all, me) + "event: message_stop\ndata: {\ndata: \"type\":\ndata: \"message_stop\"}\n\n"
		}
		p := w.play(t, fin(all)).hits(1).planned().exactly(all)
		p.because()
		w.play(t, rst(spread(w.begin("one")+w.text("one", "AB"))), fin(spread(w.begin("two")+w.text("two", "CD")+w.end("two")))).
			hits(2).message("ABCD", w.stop)
	})
}

// C6: a character over two reads; and a cut inside a character, or between the
// halves of an escape pair.
func TestC6UTF8CutAtAReadBoundary(t *testing.T) {
	const said = "漢字 😀 ok"
	each(t, func(t *testing.T, w wire) {
		all := w.begin("one") + w.text("one", said) + w.end("one")
		p := w.play(t, bytewise(all)).hits(1).exactly(all).message(said, w.stop)
		if !utf8.Valid(p.Body) {
			t.Error("invalid UTF-8 at the client")
		}

		pair := func(half string) string { return strings.ReplaceAll(w.text("one", "X"), `X`, half) }
		t.Run("pair over two deltas", func(t *testing.T) {
			all := w.begin("one") + w.text("one", "A") + pair(`\ud83d`) + pair(`\ude00`) + w.end("one")
			w.play(t, fin(all)).hits(1).exactly(all)
		})
		t.Run("cut inside a pair", func(t *testing.T) {
			p := w.play(t, rst(w.begin("one")+w.text("one", "A ")+pair(`\ud83d`)),
				fin(w.begin("two")+w.text("two", "😀 B")+w.end("two"))).hits(2)
			if q := p.Requests[1].Body; !utf8.Valid(q) || strings.Contains(string(q), "\ufffd") || strings.Contains(string(q), `\ud83d`) {
				t.Errorf("the continuation holds half a character: %s", q)
			}
			p.message("A 😀 B", w.stop).lacks("\ufffd")
		})
		// The simulator found these: halves on both sides of an event, and
		// something silent, or an error, between two halves.
		t.Run("cut in a chain of halves", func(t *testing.T) {
			w.play(t, rst(w.begin("one")+w.text("one", "A ")+pair(`\ud83d`)+pair(`\ude00\ud83d`)),
				fin(w.begin("two")+w.text("two", "😀😀 B")+w.end("two"))).hits(2).message("A 😀😀 B", w.stop).lacks("\ufffd")
		})
		t.Run("a ping between halves", func(t *testing.T) {
			all := w.begin("one") + w.text("one", "A ") + pair(`\ud83d`) + w.ping + pair(`\ude00`) + w.end("one")
			w.play(t, fin(all)).hits(1).exactly(all)
		})
		t.Run("an error between halves", func(t *testing.T) {
			w.play(t, fin(w.begin("one")+w.text("one", "A ")+pair(`\ud83d`)+w.fault),
				fin(w.begin("two")+w.text("two", "😀 B")+w.end("two"))).hits(2).message("A 😀 B", w.stop)
		})
		t.Run("an early end marker between halves", func(t *testing.T) {
			w.play(t, fin(w.begin("one")+w.text("one", "A ")+pair(`\ud83d`)+w.marker),
				fin(w.begin("two")+w.text("two", "😀 B")+w.end("two"))).hits(2).message("A 😀 B", w.stop)
		})
		t.Run("a continuation that repeats in halves", func(t *testing.T) {
			again := w.begin("two") + pair(`\ud83d`) + pair(`\ude00 seven\ud83d`) + pair(`\ude00 eight`) + w.text("two", " nine") + w.end("two")
			w.play(t, rst(w.begin("one")+w.text("one", "😀 seven😀 eight")), fin(again)).hits(2).message("😀 seven😀 eight nine", w.stop).lacks("\ufffd")
		})
		t.Run("cut inside the bytes of a character", func(t *testing.T) {
			cut := w.begin("one") + w.text("one", "A ") + w.text("one", "漢")
			at := strings.Index(cut, "漢") + 1
			p := w.play(t, rst(cut[:at]), fin(w.begin("two")+w.text("two", "漢字")+w.end("two"))).hits(2)
			if !utf8.Valid(p.Requests[1].Body) {
				t.Errorf("invalid UTF-8 upstream: %q", p.Requests[1].Body)
			}
			p.message("A 漢字", w.stop)
		})
	})
}

// C7: U+2028, U+2029 and U+0085 are no line ends; what we write ourselves keeps
// them away from clients that think so.
func TestC7UnicodeLineEndsAreText(t *testing.T) {
	const said = "a\u2028b\u2029c\u0085d"
	each(t, func(t *testing.T, w wire) {
		raw := strings.ReplaceAll(strings.ReplaceAll(w.text("one", said), `\u2028`, "\u2028"), `\u2029`, "\u2029")
		if !strings.Contains(raw, "\u2028") {
			t.Fatal("the story needs a raw U+2028")
		}
		all := w.begin("one") + raw + w.end("one")
		w.play(t, fin(all)).hits(1).exactly(all).message(said, w.stop)
		more := strings.ReplaceAll(strings.ReplaceAll(raw, "a\u2028b", " e\u2028f"), "\u2029c", " g")
		p := w.play(t, rst(w.begin("one")+raw), fin(w.begin("two")+more+w.end("two"))).hits(2).message(said+" e\u2028f g\u0085d", w.stop)
		if ours := strings.TrimPrefix(string(p.Body), w.begin("one")+raw); strings.Contains(ours, "\u2028") {
			t.Errorf("an event of ours holds a raw U+2028: %q", ours)
		}
	})
}

// C8: a byte order mark makes the first field name another one.
func TestC8ByteOrderMark(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		all := "\ufeff" + w.begin("one") + w.text("one", "AB") + w.end("one")
		w.play(t, fin(all)).hits(1).exactly(all)
		p := w.play(t, rst("\ufeff"+w.begin("one")+w.text("one", "AB")), fin("\ufeff"+w.begin("two")+w.text("two", "CD")+w.end("two"))).hits(2)
		if n := strings.Count(string(p.Body), "\ufeff"); n > 1 {
			t.Errorf("%d byte order marks", n)
		}
		if m, err := w.readOwn([]byte(strings.TrimPrefix(string(p.Body), "\ufeff"))); err != nil || m.text != "ABCD" {
			t.Errorf("%v, %v", m, err)
		}
	})
}

// C9: half an event forwarded, then a control event glued to it: clients report
// the fragment joined with the error and lose the real one.
func TestC9HalfAnEventNeverLeaves(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		cut := w.begin("one") + w.text("one", "AB")
		p := w.playWith(t, relay.Config{Recoveries: -1}, rst(cut+w.half)).hits(1).broken("failed:budget_spent")
		rest := string(p.Body[len(cut):])
		if n := len(relaytest.Units([]byte(rest))); n < 1 || n > 2 {
			t.Errorf("behind the text stand %d events: %q", n, rest)
		}
		// The provider's own error behind half an event is still read.
		w.playWith(t, relay.Config{Recoveries: -1}, rst(cut+w.half, "\n\n")).hits(1).because(interrupt.Malformed).broken("failed:budget_spent")
	})
}

// C10: event: and data: in separate reads are one event.
func TestC10EventAndDataInSeparateReads(t *testing.T) {
	all := ms("one") + bText(0) + tx(0, "AB") + stop(0) + md("end_turn", 2) + me
	var lines []string
	for l := range strings.Lines(all) {
		lines = append(lines, l)
	}
	messagesWire.play(t, body(lines...)).hits(1).exactly(all)
}

// C12: an endless line must not take the memory: hard ceiling, then the upstream
// is closed.
func TestC12AnEndlessLineHitsACeiling(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		s := run(t, w, relay.Config{MaxEvent: 64 << 10})
		s.open(200)
		s.feed(w.begin("one") + w.text("one", "AB"))
		fed := 0
		for s.n == 1 && fed < 1<<20 {
			s.feed(strings.Repeat("a", 1000))
			fed += 1000
		}
		if fed > 66<<10 || s.n != 2 {
			t.Fatalf("%d bytes were taken with a ceiling of 64 KiB", fed)
		}
		if c := s.note[len(s.note)-2].Cause; c.Kind != interrupt.Malformed {
			t.Errorf("cause %+v", c)
		}
		s.open(200)
		s.feed(w.begin("two") + w.text("two", "CD") + w.end("two"))
		if m, err := w.read([]byte(s.got)); err != nil || m.text != "ABCD" {
			t.Errorf("%v, %v", m, err)
		}
	})
}

// C13: valid JSON of an unexpected shape is forwarded verbatim; a typed unmarshal
// dropped the frame and let the finish pass.
func TestC13UnexpectedShapesPassVerbatim(t *testing.T) {
	object := chunk("one", `"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":{"city":"X"}}}]`, "null")
	parts := chunk("one", `"content":[{"type":"text","text":"hi"}]`, "null")
	strange := chunk("one", `"hologram":{"depth":3}`, "null")
	t.Run("chat/arguments as an object", func(t *testing.T) {
		all := role("one") + object + fr("one", "tool_calls") + done
		chatWire.play(t, fin(all)).hits(1).planned().exactly(all)
	})
	t.Run("chat/content as an array", func(t *testing.T) {
		all := role("one") + parts + fr("one", "stop") + done
		chatWire.play(t, fin(all)).hits(1).planned().exactly(all)
	})
	t.Run("chat/unknown delta", func(t *testing.T) {
		all := role("one") + strange + oc("one", "hi") + fr("one", "stop") + done
		chatWire.play(t, fin(all)).hits(1).planned().exactly(all)
	})
	t.Run("chat/unknown event name", func(t *testing.T) {
		all := role("one") + event("mystery", `{"a":1}`) + oc("one", "hi") + fr("one", "stop") + done
		chatWire.play(t, fin(all)).hits(1).planned().exactly(all)
	})
	t.Run("messages/unknown event and block", func(t *testing.T) {
		all := ms("one") + event("mystery", `{"type":"mystery","a":1}`) + block(0, `"type":"hologram","depth":3`) + stop(0) + bText(1) + tx(1, "hi") + stop(1) + md("end_turn", 1) + me
		messagesWire.play(t, fin(all)).hits(1).planned().exactly(all)
	})
	t.Run("messages/unknown block is not spliceable", func(t *testing.T) {
		cut := ms("one") + bText(0) + tx(0, "hi") + stop(0) + block(1, `"type":"hologram","depth":3`)
		messagesWire.play(t, rst(cut)).hits(1).planned("refuse(unknown_block:hologram)").broken("failed:unknown_block:hologram")
	})
}

// C14: chunks without id, object, created, model make one chat UI hang. Every
// chunk of ours carries those of the first attempt.
func TestC14EveryChunkHasTheEnvelopeOfTheFirst(t *testing.T) {
	other := func(s string) string {
		return strings.NewReplacer("1770000000", "1770009999", "gpt-4o-mini", "gpt-4o-mini-again").Replace(s)
	}
	stories := map[string]played{
		"continued": chatWire.play(t, rst(role("one")+oc("one", "AB")),
			fin(other(role("two")+oc("two", "CD")+fr("two", "stop")+done))),
		"ended as tool use": chatWire.play(t, rst(role("one")+oc("one", "AB")+tc("one", 0, "c1", "f", `{"a":1}`))),
		"only the marker":   chatWire.play(t, fin(role("one")+oc("one", "AB")+fr("one", "stop"))),
	}
	for name, p := range stories {
		t.Run(name, func(t *testing.T) {
			p.clean()
			n := 0
			for _, u := range relaytest.Units(p.Body) {
				var c struct {
					ID, Object, Model string
					Created           int64
				}
				data := strings.TrimPrefix(strings.TrimSpace(string(u)), "data: ")
				if data == "[DONE]" {
					continue
				}
				if err := json.Unmarshal([]byte(data), &c); err != nil {
					t.Fatalf("%s: %v", u, err)
				}
				n++
				if c.ID != "one" || c.Object != "chat.completion.chunk" || c.Model != "gpt-4o-mini" || c.Created != 1770000000 {
					t.Errorf("chunk %d has another envelope: %s", n, data)
				}
			}
			if n < 3 {
				t.Errorf("%d chunks", n)
			}
		})
	}
}
