package relay_test

import "testing"

// Parallel calls need not come one behind the other. A host that told them by turns had a
// call closed when another began to speak, so that its client was given half of one as
// runnable, or one that waited for its arguments with {} in their place.
func TestCallsToldByTurns(t *testing.T) {
	w := chatWire
	open := role("one")
	for _, c := range []struct {
		name, said, text string
		calls            []string
	}{
		{"one of them is whole", tc("one", 0, "a", "f", `{"p"`) + tc("one", 1, "b", "g", `{"q"`) + ta("one", 0, `:1}`) + ta("one", 1, `:`), "", []string{`f{"p":1}`}},
		{"both are", tc("one", 0, "a", "f", `{"p"`) + tc("one", 1, "b", "g", `{"q"`) + ta("one", 0, `:1}`) + ta("one", 1, `:2}`), "", []string{`f{"p":1}`, `g{"q":2}`}},
		{"the second is opened first, and whole first", tc("one", 1, "b", "g", "") + tc("one", 0, "a", "f", "") + ta("one", 0, `{"p"`) + ta("one", 1, `{"q"`) + ta("one", 1, `:2}`) + ta("one", 0, `:`), "", []string{`g{"q":2}`}},
		{"the first still waits for its arguments", tc("one", 0, "a", "f", "") + tc("one", 1, "b", "g", "") + ta("one", 1, `{"q":2}`), "", []string{`g{"q":2}`}},
		{"text between", tc("one", 0, "a", "f", `{"p"`) + oc("one", "so") + ta("one", 0, `:1}`), "so", []string{`f{"p":1}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.play(t, rst(open+c.said)).hits(1).planned("r2_synthesize_tool_use(complete_tool_call)").message(c.text, "tool_calls", c.calls...)
		})
	}
}

// A call leaves when its arguments are one whole object. A host that then says more of it
// has spoilt what the client has, and no end of ours may make that runnable.
func TestCallThatGoesOnBehindItsEnd(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		first := map[string]string{
			"chat":     role("one") + tc("one", 0, "a", "f", `{"p":1}`),
			"messages": ms("one") + bTool(0, "a", "f") + jx(0, `{"p":1}`),
		}[w.name]
		more := map[string]string{"chat": ta("one", 0, `{"p":2}`), "messages": jx(0, `{"p":2}`)}[w.name]
		if first == "" {
			return
		}
		w.play(t, rst(first)).hits(1).planned("r2_synthesize_tool_use(complete_tool_call)")
		w.play(t, rst(first+more)).hits(1).planned("refuse(unknown_block:call_goes_on)").broken("failed:unknown_block:call_goes_on")
		w.play(t, rst(first+more+more)).hits(1).planned("refuse(unknown_block:call_goes_on)").broken("failed:unknown_block:call_goes_on")
	})
}
