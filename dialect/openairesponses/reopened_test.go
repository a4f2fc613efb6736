package openairesponses_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// twoParts is a message of two parts, ended; the second says text.
func twoParts(text string) *script {
	part := func(body string) string {
		return `{"type":"output_text","annotations":[],"logprobs":[],"text":` + quote(body) + `}`
	}
	s := begin("resp_A").item(0, `{"id":"msg_A","type":"message","status":"in_progress","content":[],"role":"assistant"}`)
	for i, body := range []string{"One. ", text} {
		at := `"item_id":"msg_A","output_index":0,"content_index":` + string(rune('0'+i))
		s.event("response.content_part.added", at+`,"part":`+part(""))
		s.event("response.output_text.delta", at+`,"delta":`+quote(body)+`,"logprobs":[]`)
		s.event("response.output_text.done", at+`,"text":`+quote(body)+`,"logprobs":[]`)
		s.event("response.content_part.done", at+`,"part":`+part(body))
	}
	return s.ends(0, `{"id":"msg_A","type":"message","status":"completed","content":[`+part("One. ")+`,`+part(text)+`],"role":"assistant"}`)
}

// Relay holds the end of a text back while a call may follow, and takes it back when
// the call is cut: the last part is open again, though the first one, closed long ago,
// bears the end of the item that the client never got. The item must end once the part
// does, with what was said since.
func TestAMessageOfTwoPartsThatWasOpenedAgainIsEndedAgain(t *testing.T) {
	said := fold(t, string(twoParts("Two").out))
	if len(said.Blocks) != 2 || !said.Blocks[0].Closed || !said.Blocks[1].Closed {
		t.Fatalf("reads as\n%s", dialecttest.Format(said))
	}
	said.Blocks[1].Closed = false
	for _, d := range []turn.Delta{{Kind: turn.Text, Block: 1, Text: []byte(" and more.")}} {
		if err := said.Fold(d); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		render func(said *turn.Snapshot) []byte
	}{
		{"by the close of its block", func(said *turn.Snapshot) []byte { return d.CloseBlock(nil, said, 1) }},
		{"by the finish", func(said *turn.Snapshot) []byte { return d.Finish(nil, nil, said, dialect.Ending{Why: turn.Stopped}) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := c.render(said.Clone())
			ends := 0
			for _, e := range dialecttest.Units(out) {
				if string(e.Name) != "response.output_item.done" {
					continue
				}
				ends++
				for at, want := range map[string]string{"item/content/0/text": `"One. "`, "item/content/1/text": `"Two and more."`} {
					if got := jsonwalk.Get(e.Data, strings.Split(at, "/")...); string(got) != want {
						t.Errorf("%s = %s, want %s", at, got, want)
					}
				}
			}
			if ends != 1 || bytes.Count(out, []byte(`"type":"response.output_text.done"`)) != 1 {
				t.Errorf("the item ends %d times:\n%s", ends, out)
			}
		})
	}
}
