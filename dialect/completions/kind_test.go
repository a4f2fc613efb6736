package completions

import (
	"bytes"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/turn"
)

// Mistral's fill-in-the-middle is answered in chat chunks, and its clients read
// nothing else.
func TestAHostThatAnswersInChatChunksIsWrittenToInKind(t *testing.T) {
	d := Dialect{}
	r := dialecttest.Parse(t, d, []byte(`{"prompt":"def f(","suffix":"return x","stream":true}`))
	for head, want := range map[string][2]string{
		`{"id":"cmpl-A1","object":"chat.completion.chunk","choices":[]}`: {`"content":"x"`, `"text"`},
		`{"id":"cmpl-A1","object":"text_completion","choices":[]}`:       {`"text":"x"`, `"delta"`},
		`{"id":"cmpl-A1","choices":[]}`:                                  {`"object":"text_completion"`, `"delta"`},
	} {
		said := saying("x")
		said.Head = []byte(head)
		stream := d.Replay(nil, r, said)
		stream = d.Finish(stream, r, said, dialect.Ending{Why: turn.Stopped})
		if !bytes.Contains(stream, []byte(want[0])) || bytes.Contains(stream, []byte(want[1])) {
			t.Errorf("behind %s:\n%s", head, stream)
		}
		if s := dialecttest.Read(t, d, r, stream); string(s.Prose()) != "x" || !s.Finished() || !s.Terminated {
			t.Errorf("behind %s it reads as:\n%s", head, dialecttest.Format(s))
		}
	}
}
