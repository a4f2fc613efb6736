package relay_test

import (
	"bytes"
	"testing"

	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
)

// A8 in every dialect. Where the finish is the last event, as in Responses and Gemini,
// a message that a provider began behind it went on in the client's: the relay waited
// for a marker that those never send, and passed on what came.
func TestA8NoSecondMessageBehindTheEnd(t *testing.T) {
	for _, a := range authors {
		t.Run(a.name, func(t *testing.T) {
			all := numbered(a.begin(one) + a.text(one, said1) + a.end(one, said1))
			begin := a.begin(one)
			if a.name == generate.name {
				begin = "" // an empty chunk, which may pass
			}
			late := numbered(begin + a.text(one, said2) + a.end(one, said2))
			w := relaytest.World{Dialect: a.d, Config: relay.Config{Targets: []relay.Target{{Ability: prefilling}}}}
			for name, chunks := range map[string][][]byte{"one read": {append(bytes.Clone(all), late...)}, "two reads": {all, late}} {
				res, err := w.Run([]byte(a.request), func(relaytest.Request) relaytest.Reply {
					return relaytest.Reply{Chunks: chunks, Hang: true}
				})
				if err != nil || res.End != relay.Clean || !bytes.Equal(res.Body, all) {
					t.Errorf("%s: %v, ended %v as %s\ngot  %s\nwant %s", name, err, res.End, res.Outcome(), res.Body, all)
				}
			}
		})
	}
}
