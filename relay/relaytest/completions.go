package relaytest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/sse"
)

// RenderCompletions returns the stream of a as the legacy completions send it: chunks
// of text, the finish in a chunk of its own, the usage record if asked for, and the
// marker.
func RenderCompletions(a faultinject.Answer, o faultinject.Options) [][]byte {
	id := "cmpl-" + o.ID + strconv.FormatUint(o.Seed, 10)
	var events [][]byte
	chunk := func(choices, usage string) {
		events = append(events, sse.Append(nil, "", fmt.Appendf(nil,
			`{"id":%q,"object":"text_completion","created":1770853433,"model":%q,"choices":%s%s}`, id, o.Model, choices, usage)))
	}
	null := ""
	if o.IncludeUsage {
		null = `,"usage":null`
	}
	tokens := 0
	for text := a.Text(); len(text) > 0; tokens++ {
		n := 0
		for i := 0; i < 3+int(o.Seed%5) && n < len(text); i++ {
			_, w := utf8.DecodeRuneInString(text[n:])
			n += w
		}
		said, err := json.Marshal(text[:n])
		if err != nil {
			panic("BUG: relaytest: " + err.Error()) // strings always marshal
		}
		chunk(fmt.Sprintf(`[{"index":0,"text":%s,"logprobs":null,"finish_reason":null}]`, said), null)
		text = text[n:]
	}
	finish := "stop"
	if a.Finish == faultinject.FinishLength {
		finish = "length"
	}
	chunk(`[{"index":0,"text":"","logprobs":null,"finish_reason":"`+finish+`"}]`, null)
	if o.IncludeUsage {
		chunk("[]", fmt.Sprintf(`,"usage":{"prompt_tokens":11,"completion_tokens":%d,"total_tokens":%d}`, tokens, 11+tokens))
	}
	return append(events, []byte("data: [DONE]\n\n"))
}
