package relay_test

import (
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/turn"
)

// What cannot be carried on is refused, with a reason that names it, and the client
// keeps what it has; the same request, cut before anything was visible, is simply
// sent again (DESIGN §3).
func TestRefusalsNameTheirReason(t *testing.T) {
	refusing := chunk("one", `"refusal":"I cannot"`, "null")
	for _, c := range []struct {
		name   string
		w      wire
		said   string
		reason string
	}{
		{"several choices", chatWire.with(`"n":2`), role("one") + oc("one", "AB"), "several_choices"},
		{"logprobs", chatWire.with(`"logprobs":true`), role("one") + oc("one", "AB"), "logprobs"},
		{"a refusal in words", chatWire, role("one") + refusing, "unknown_block:refusal"},
		{"audio", chatWire.with(`"modalities":["text","audio"],"audio":{"voice":"alloy","format":"wav"}`), role("one") + oc("one", "AB"), "unsplicable:audio"},
		{"unknown block", messagesWire, ms("one") + block(0, `"type":"hologram","depth":3`), "unknown_block:hologram"},
		{"hosted tool in flight", messagesWire, ms("one") + block(0, `"type":"server_tool_use","id":"s1","name":"web_search","input":{}`), "hosted_tool:web_search"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := c.w.play(t, rst(c.said)).hits(1).planned("refuse(" + c.reason + ")")
			if !strings.HasPrefix(string(p.Body), c.said) {
				t.Errorf("the client lost what it had: %s", p.Body)
			}
			p.has(1, "not recovered: "+c.reason)
			if p.End != relay.Abort || p.Outcome() != "failed:"+c.reason {
				t.Errorf("ended %v as %s", p.End, p.Outcome())
			}
			good := c.w.begin("two") + c.w.text("two", "hi") + c.w.end("two")
			head := map[string]string{"chat": role("one"), "messages": ms("one")}[c.w.name]
			c.w.play(t, rst(head), fin(good)).hits(2).exactly(good)
		})
	}
	t.Run("tools with effects are declared", func(t *testing.T) {
		w := messagesWire
		w.request = strings.Replace(w.request, `"tools":[`, `"tools":[{"type":"code_execution_20250825","name":"code_execution"},`, 1)
		good := w.begin("two") + w.text("two", "hi") + w.end("two")
		w.play(t, rst(ms("one"))).hits(1).planned("refuse(hosted_tools_declared)").answered(502, "")
		w.play(t, unreachable(true), fin(good)).hits(2).exactly(good)
		w.play(t, refusal(429, busy), fin(good)).hits(2).exactly(good)
	})
	t.Run("blocks out of order", func(t *testing.T) {
		// The provider broke its own order: what it says is relayed, and
		// nothing can be joined to it.
		h := run(t, messagesWire, relay.Config{})
		h.open(200)
		odd := ms("one") + bText(0) + tx(0, "AB") + bText(1) + stop(0) + tx(0, "CD")
		h.feed(odd)
		h.break_(interrupt.Reset)
		if want := "refuse(unknown_block:" + turn.ErrClosedBlock.Error() + ")"; !strings.HasPrefix(h.got, odd) || h.end != relay.Abort || strings.Join(h.plans(), " ") != want {
			t.Errorf("ended %v, plans %v, want %s: %s", h.end, h.plans(), want, h.got)
		}
	})
}
