package gauge

import (
	"strings"
	"testing"
)

func TestEndpointsOfBaseURLs(t *testing.T) {
	for _, c := range []struct {
		wire       Wire
		base, want string // "": an error
	}{
		{Chat, "https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"},
		{Chat, "https://api.openai.com", "https://api.openai.com/v1/chat/completions"},
		{Chat, "http://127.0.0.1:8790/u/local/v1/", "http://127.0.0.1:8790/u/local/v1/chat/completions"},
		{Chat, "https://host/api/paas/v4", "https://host/api/paas/v4/chat/completions"},
		{Messages, "https://api.anthropic.com", "https://api.anthropic.com/v1/messages"},
		{Messages, "https://api.anthropic.com/v1", "https://api.anthropic.com/v1/messages"},
		{Messages, "http://127.0.0.1:8790/u/bedrock", "http://127.0.0.1:8790/u/bedrock/v1/messages"},
		{Chat, "127.0.0.1:80", ""},
		{Chat, "ftp://host", ""},
	} {
		got, err := c.wire.endpoint(c.base)
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s of %s is %q, %v", c.wire, c.base, got, err)
		}
	}
}

func TestTheProviderIsUnderstoodOnEachWire(t *testing.T) {
	p := openProvider(t)
	for _, w := range wires {
		t.Run(string(w), func(t *testing.T) {
			a, err := newAsker(w, "http://"+p.Addr(), "k", 1)
			if err != nil {
				t.Fatal(err)
			}
			defer a.close()
			shape := Shape{Events: 7, Bytes: 3}
			got := a.ask(within(t), shape.on(w, true, 10), nil)
			if got.err != nil || got.text.Len() != 7*shape.textBytes() || len(got.beats) != 7 {
				t.Errorf("%d beats, %d bytes of text, %v", len(got.beats), got.text.Len(), got.err)
			}
			if _, ok := got.first(); !ok || got.ended.Before(got.beats[6].at) {
				t.Error("it has no times")
			}
			cutAt := 2 * shape.textBytes()
			last, next, ok := got.beyond(cutAt)
			if !ok || last != got.beats[1].at || next != got.beats[2].at {
				t.Error("the break is not where it is")
			}
			if _, _, ok := got.beyond(7 * shape.textBytes()); ok {
				t.Error("something is beyond the end")
			}
		})
	}
}

func TestWhatIsSaid(t *testing.T) {
	for _, c := range []struct {
		wire  Wire
		data  string
		text  string
		end   bool
		fault string
	}{
		{Chat, `{"choices":[{"delta":{"content":"a\n"}}]}`, "a\n", false, ""},
		{Chat, `{"choices":[],"usage":{}}`, "", false, ""},
		{Chat, `{"choices":[{"delta":{},"finish_reason":"stop"}]}`, "", false, ""},
		{Chat, `[DONE]`, "", true, ""},
		{Chat, `{"error":{"message":"no"}}`, "", false, "no"},
		{Chat, `{"error":null,"choices":[{"delta":{"content":"a"}}]}`, "a", false, ""},
		{Chat, `{`, "", false, "not an event"},
		{Messages, `{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}`, "a", false, ""},
		{Messages, `{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, "", false, ""},
		{Messages, `{"type":"message_stop"}`, "", true, ""},
		{Messages, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, "", false, "overloaded_error: Overloaded"},
	} {
		text, end, err := c.wire.said([]byte(c.data))
		if text != c.text || end != c.end || (err != nil) != (c.fault != "") || err != nil && !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s %s: %q, %v, %v", c.wire, c.data, text, end, err)
		}
	}
}
