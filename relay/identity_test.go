package relay_test

import (
	"bytes"
	"fmt"
	"github.com/unbroken-llm/unbroken/dialect"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/sse"
)

// strayEnds are recordings that end in a way that Unbroken completes or refuses:
// their response is not their bytes.
var strayEnds = map[string]string{
	"groq/tool-use-failed-error-with-text.sse":       "an error inside the stream",
	"openrouter/stream-error.sse":                    "an error inside the stream",
	"anthropic/spliced-message-start.chunks.txt":     "two responses in one stream",
	"openai-chat/legacy-completions-text.chunks.txt": "another wire",
	"openai-compat-other/vllm-completions.sse":       "another wire",
}

// TestEveryRecordingPassesByteForByte: with no interruption the client gets the
// provider's bytes, in order, however they were read (DESIGN §1.3). A missing end
// marker is added; what stands behind the end is not forwarded.
func TestEveryRecordingPassesByteForByte(t *testing.T) {
	for _, f := range []family{chat, messages} {
		recs := relaytest.Recordings(t, f.fallback, f.named, f.folders...)
		for _, r := range recs {
			if strayEnds[r.Name] != "" {
				continue
			}
			t.Run(r.Name, func(t *testing.T) {
				stream := r.Stream()
				for _, size := range []int{1, 7, 4096, len(stream)} {
					w := relaytest.World{Dialect: f.d, Config: relay.Config{Targets: []relay.Target{{
						Ability: dialect.Ability{NoFinish: strings.Contains(r.Name, "snowflake")},
					}}}}
					res, err := w.Run(r.Request, func(q relaytest.Request) relaytest.Reply {
						if q.N > 1 {
							t.Fatalf("reads of %d: interrupted", size)
						}
						var reply relaytest.Reply
						for b := stream; len(b) > 0; b = b[min(size, len(b)):] {
							reply.Chunks = append(reply.Chunks, b[:min(size, len(b))])
						}
						return reply
					})
					if err != nil || res.Broken != "" || res.End != relay.Clean {
						t.Fatalf("reads of %d: %v %s, ended %v as %s", size, err, res.Broken, res.End, res.Outcome())
					}
					if err := same(res.Body, stream, f.marker); err != nil {
						t.Fatalf("reads of %d: %v", size, err)
					}
					if err := logHolds(f.d, r.Request, res); err != nil {
						t.Fatalf("reads of %d: checkpoint: %v", size, err)
					}
				}
			})
		}
	}
}

// same compares what the client got with what the provider sent.
func same(got, sent []byte, marker string) error {
	if bytes.Equal(got, sent) {
		return nil
	}
	if rest, ok := bytes.CutPrefix(got, sent); ok && string(rest) == marker {
		return nil
	}
	if rest, ok := bytes.CutPrefix(sent, got); ok {
		// Only what is no event may be missing behind the end.
		var sc sse.Scanner
		sc.Push(rest)
		for e, ok := sc.Next(); ok; e, ok = sc.Next() {
			if e.Data != nil {
				return fmt.Errorf("an event is missing at the end: %q", e.Raw)
			}
		}
		return nil
	}
	n := 0
	for n < len(got) && n < len(sent) && got[n] == sent[n] {
		n++
	}
	return fmt.Errorf("differs at byte %d: got %q, sent %q", n, head(got[n:]), head(sent[n:]))
}

func head(b []byte) []byte { return b[:min(len(b), 160)] }
