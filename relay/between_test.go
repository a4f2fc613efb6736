package relay_test

import (
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

// A model repeated the anchor, said a blank line, and called a tool or ended: the
// blank line was taken for part of the repetition, and the client's text lacked it.
// White space behind a repetition is new text, whatever comes behind it and however
// the continuation begins.

const (
	betweenHead = "Once upon a time there was a small village by the sea. "
	betweenTail = "Its people caught fish and mended nets every evening"
)

// betweens is what may stand between what was said and what follows.
var betweens = map[string]string{
	"line break": "\n", "blank line": "\n\n", "CRLF": "\r\n", "CRLF twice": "\r\n\r\n", "space": " ", "spaces": "   ", "tab": "\t",
	"no-break space": "\u00a0", "zero-width space": "\u200b", "line separator": "\u2028", "hard break": "  \n", "many": "\n \n\t \n",
}

func TestWhiteSpaceBehindASeamIsNewText(t *testing.T) {
	said := betweenHead + betweenTail
	anchor := said[len(said)-40:]
	for _, a := range authors {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			for _, kind := range []struct {
				name, repeats string
				ability       dialect.Ability
			}{
				{"exact", "", dialect.Ability{Manners: []turn.Manner{turn.Prefill}}},
				{"exact, asked", "", dialect.Ability{Manners: []turn.Manner{turn.Asked}}},
				{"anchor", anchor, dialect.Ability{Manners: []turn.Manner{turn.Asked}}},
				{"overlap", betweenTail, dialect.Ability{Manners: []turn.Manner{turn.Asked}}},
				{"overlap, echoing", betweenTail, dialect.Ability{Manners: []turn.Manner{turn.Prefill}, Echoes: true}},
				{"whole, asked", said, dialect.Ability{Manners: []turn.Manner{turn.Asked}}},
				{"whole, echoing", said, dialect.Ability{Manners: []turn.Manner{turn.Prefill}, Echoes: true}},
			} {
				for name, white := range betweens {
					for what, rest := range map[string]string{"text": white + "Next", "the end": white} {
						if rest == white && (kind.repeats == "" && kind.ability.Manners[0] == turn.Asked) || a.d.Traits().Appends && kind.ability.Manners[0] == turn.Asked {
							continue // nothing new, or not asked there
						}
						w := relaytest.World{Dialect: a.d, Config: relay.Config{Anchor: 40, Targets: []relay.Target{{Ability: kind.ability}}}}
						replies := []relaytest.Reply{rst(a.begin(one), a.text(one, said)), fin(a.begin("two"), a.text("two", kind.repeats), a.text("two", rest), a.end("two", kind.repeats+rest))}
						res, err := w.Run([]byte(a.request), inTurn(replies))
						if err != nil || res.Broken != "" || res.End != relay.Clean {
							t.Errorf("%s, %s, %s: %v %s, ended %v as %s, plans %v", kind.name, name, what, err, res.Broken, res.End, res.Outcome(), res.Plans())
							continue
						}
						s, _, err := relaytest.Fold(a.d, mustParse(a.d, []byte(a.request)), res.Body)
						if err != nil || string(s.Prose()) != said+rest {
							t.Errorf("%s, %s, %s: %v, has %q, want %q", kind.name, name, what, err, s.Prose(), said+rest)
						}
					}
				}
			}
		})
	}
}

// The same in front of a call, which is why no new words are needed there.
func TestWhiteSpaceBetweenAnAnchorAndACallIsNewText(t *testing.T) {
	said := betweenHead + betweenTail
	each(t, func(t *testing.T, w wire) {
		for name, white := range betweens {
			for kind, repeats := range map[string]string{"anchor": said[len(said)-40:], "overlap": betweenTail, "whole": said, "nothing": ""} {
				t.Run(name+" behind "+kind, func(t *testing.T) {
					c := only(turn.Asked)
					c.Anchor = 40
					p := w.playWith(t, c, rst(w.begin("one")+w.text("one", said)),
						fin(w.begin("two")+w.text("two", repeats)+w.text("two", white)+w.tool("two", "c1", "f")+w.args("two", `{"a":1}`)+w.called("two")))
					p.hits(2).message(said+white, w.asks, `f{"a":1}`)
				})
			}
		}
	})
}

// White space that ends a stop sequence ends the turn there, also when nothing but a
// call follows it.
func TestWhiteSpaceBehindAnAnchorMayBeAStop(t *testing.T) {
	said := betweenHead + betweenTail
	w := chatWire.with(`"stop":["evening\n\n"]`)
	c := only(turn.Asked)
	c.Anchor = 40
	p := w.playWith(t, c, rst(w.begin("one")+w.text("one", said)),
		fin(w.begin("two")+w.text("two", said[len(said)-40:])+w.text("two", "\n\n")+w.tool("two", "c1", "f")+w.args("two", `{"a":1}`)+w.called("two")))
	p.hits(2).message(said, "stop")
	if strings.Contains(string(p.Body), "c1") {
		t.Errorf("a call behind the stop: %s", p.Body)
	}
}
