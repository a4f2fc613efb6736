package bedrock

import (
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/turn"
)

// FuzzRewrite: whatever a provider says in well-formed frames decodes or is an error, and what is rewritten of it is
// whole frames that decode again.
func FuzzRewrite(f *testing.F) {
	f.Add("contentBlockDelta", []byte(`{"contentBlockIndex":0,"delta":{"text":"One"},"p":"ab"}`), []byte(`{"contentBlockIndex":0}`))
	f.Add("contentBlockStart", []byte(`{"contentBlockIndex":1,"start":{"toolUse":{"toolUseId":"a","name":"f"}}}`), []byte(`{"contentBlockIndex":1,"delta":{"toolUse":{"input":"{}"}}}`))
	f.Add("contentBlockDelta", []byte(`{"contentBlockIndex":2,"delta":{"reasoningContent":{"redactedContent":"ZQ=="}}}`), []byte(`{"contentBlockIndex":2,"delta":{"citation":{}}}`))
	f.Add("metadata", []byte(`{"usage":{"inputTokens":1}}`), []byte(`{}`))
	f.Add("chunk", []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`), []byte(`{"type":"message_stop"}`))
	f.Fuzz(func(t *testing.T, name string, one, two []byte) {
		for _, d := range []dialect.Dialect{Converse{}, Invoke{}} {
			stream := event(nil, "messageStart", []byte(`{"role":"assistant"}`))
			if name == chunk {
				stream = appendChunk(appendChunk(nil, one), two)
			} else {
				stream = event(event(event(stream, name, one), "contentBlockDelta", two), "contentBlockStop", two)
			}
			dec, said := d.NewDecoder(nil), &turn.Snapshot{Head: []byte(`{"role":"assistant"}`)}
			var out []byte
			for _, e := range dialecttest.UnitsOf(d, stream) {
				ds, err := dec.Decode(nil, e)
				if err != nil {
					continue
				}
				out = d.Rewrite(out, nil, e, ds, said)
				for _, x := range ds {
					_ = said.Fold(x)
				}
			}
			n := 0
			for _, e := range dialecttest.UnitsOf(d, out) {
				n += len(e.Raw)
				if _, err := d.NewDecoder(nil).Decode(nil, e); err == ErrJSON || err == ErrChunk {
					t.Fatalf("%s: rewritten to %q: %v", d.Name(), e.Data, err)
				}
			}
			if n != len(out) {
				t.Fatalf("%s: %d of %d bytes are frames", d.Name(), n, len(out))
			}
		}
	})
}
