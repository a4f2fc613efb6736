package anthropic_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// The script notation of FIELD-REPORTS, as events.

const head = `{"type":"message_start","message":{"id":"msg_a","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_read_input_tokens":4,"output_tokens":1}}}`

func begin(i int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, block)
}

func beginText(i int) string     { return begin(i, `{"type":"text","text":""}`) }
func beginThinking(i int) string { return begin(i, `{"type":"thinking","thinking":"","signature":""}`) }

func beginTool(i int, id, name string) string {
	return begin(i, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, id, name))
}

func delta(i int, typ, member, text string) string {
	body, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%s}}`, i, typ, member, body)
}

func says(i int, text string) string   { return delta(i, "text_delta", "text", text) }
func thinks(i int, text string) string { return delta(i, "thinking_delta", "thinking", text) }
func signs(i int, text string) string  { return delta(i, "signature_delta", "signature", text) }
func args(i int, text string) string   { return delta(i, "input_json_delta", "partial_json", text) }
func stop(i int) string                { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i) }

func finish(reason string, out int) string {
	return fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":%d}}`, reason, out)
}

const end = `{"type":"message_stop"}`

// stream frames events as the provider does.
func stream(events ...string) (out []byte) {
	for _, e := range events {
		var typ struct{ Type string }
		if err := json.Unmarshal([]byte(e), &typ); err != nil {
			panic(err)
		}
		out = sse.Append(out, typ.Type, []byte(e))
	}
	return out
}

// said folds events, the head in front.
func said(t *testing.T, events ...string) *turn.Snapshot {
	t.Helper()
	return dialecttest.Read(t, d, nil, stream(append([]string{head}, events...)...))
}

func parse(t *testing.T, body string) *dialect.Request {
	t.Helper()
	return dialecttest.Parse(t, d, []byte(body))
}
