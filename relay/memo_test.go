package relay_test

import (
	"slices"
	"testing"
)

// What R2 took out is remembered for a hint: every call that was cut, each name
// once, with the ids of those that stay (DESIGN §6).
func TestR2RemembersWhatItTookOut(t *testing.T) {
	first := ms("one") + bTool(0, "c1", "f") + jx(0, `{"a":1}`) + stop(0) + bTool(1, "c2", "g") + jx(1, `{"b":`) + stop(1) +
		bTool(2, "c3", "h") + jx(2, `{"c":`) + stop(2) + bTool(3, "c4", "g") + jx(3, `{"d":`)
	p := messagesWire.play(t, rst(first)).hits(1).planned("r2_synthesize_tool_use(complete_tool_call)")
	m := p.Memo
	if m == nil || !slices.Equal(m.Calls, []string{"c1"}) || !slices.Equal(m.Interrupted, []string{"g", "h"}) {
		t.Fatalf("remembered %+v", m)
	}
	if done, cut := m.Said.Calls(); done != 1 || cut != 0 || !m.Said.Finished() {
		t.Errorf("the message has %d calls, %d of them cut", done, cut)
	}

	first = ms("one") + bTool(0, "c1", "f") + jx(0, `{"a":1}`) + stop(0) + bTool(1, "c2", "g") + jx(1, `{"b":2}`)
	p = messagesWire.play(t, rst(first)).hits(1)
	if m := p.Memo; m == nil || m.Interrupted != nil || m.Calls != nil {
		t.Errorf("nothing was cut, remembered %+v", m)
	}
}

// A turn is remembered whose provider does not know it by the id that the client
// has, and no other.
func TestOnlyASplicedTurnIsRemembered(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		whole := w.begin("one") + w.text("one", "AB") + w.end("one")
		for _, tt := range []struct {
			name string
			play played
			want bool
		}{
			{"uninterrupted", w.play(t, fin(whole)), false},
			{"continued", w.play(t, rst(w.begin("one")+w.text("one", "AB")), fin(w.begin("two")+w.text("two", "CD")+w.end("two"))), true},
			{"restarted before anything was shown", w.play(t, rst(""), fin(whole)), false},
			{"given up", w.play(t, rst(w.begin("one")+w.text("one", "AB")), rst(""), rst(""), rst("")), false},
		} {
			if got := tt.play.Memo != nil; got != tt.want {
				t.Errorf("%s: remembered %t", tt.name, got)
			}
		}
	})
}
