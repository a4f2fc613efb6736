package relaytest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/turn"
)

// judge checks what must hold of a whole scenario: one legal message that is the
// provider's answer or an honest part of it, or an honest error.
func (sim *simulation) judge() error {
	res := &sim.r.res
	if sim.out.Left {
		if res.End != relay.Abort || res.Outcome() != "client_gone" {
			return fmt.Errorf("a client left, and the stream ended %v as %s", res.End, res.Outcome())
		}
		// It may come back with its run id: the checkpoint has what it saw, and
		// perhaps what was held.
		log, err := turn.Replay(res.Log)
		if err != nil {
			return fmt.Errorf("checkpoint: %w", err)
		}
		if !bytes.HasPrefix(log.Prose(), sim.has.Prose()) {
			return fmt.Errorf("checkpoint says %q, a client that left saw %q", log.Prose(), sim.has.Prose())
		}
		return nil
	}
	if res.Head == nil {
		return errors.New("no response head")
	}
	if !res.Head.Stream {
		if res.End == relay.Clean && res.Head.Status >= 400 && len(res.Body) > 0 {
			return nil
		}
		return fmt.Errorf("answered %d with %d bytes, ended %v", res.Head.Status, len(res.Body), res.End)
	}
	has, faults, err := Fold(sim.wire.Dialect, sim.req, res.Body)
	if err != nil {
		return fmt.Errorf("client bytes: %w", err)
	}
	if err := sim.held(has); err != nil {
		return err
	}
	if err := sim.oneStart(); err != nil {
		return err
	}
	if err := sim.truthful(has); err != nil {
		return err
	}
	switch res.End {
	case relay.Clean:
		return sim.ended(has, len(faults))
	case relay.Abort:
		if len(faults) != 1 || has.Finished() {
			return fmt.Errorf("aborted with %d errors, finished %v", len(faults), has.Finished())
		}
		if !sim.out.Stopped && !strings.HasPrefix(res.Outcome(), "failed:") {
			return fmt.Errorf("aborted as %s", res.Outcome())
		}
	}
	return nil
}

// oneStart: one start, one end, at most one end marker.
func (sim *simulation) oneStart() error {
	for _, once := range []string{"event: message_start", "event: message_stop", "data: [DONE]", "data:[DONE]"} {
		if n := bytes.Count(sim.r.res.Body, []byte(once)); n > 1 {
			return fmt.Errorf("%d times %q", n, once)
		}
	}
	return nil
}

// truthful: text and calls are the first of what the answer has, none doubled, lost in
// the middle, invented or cut. Mode events may withdraw, which an ordinary reader does
// not see: its calls are judged by those that are whole.
func (sim *simulation) truthful(has *turn.Snapshot) error {
	if sim.config.Events && bytes.Contains(sim.r.res.Body, []byte("event: stream_reset")) {
		return nil
	}
	if said, truth := string(has.Prose()), sim.answer.Text(); !strings.HasPrefix(truth, said) {
		return fmt.Errorf("text is no beginning of the answer:\n%q\n%q", said, truth)
	}
	want := sim.answer.Calls()
	ids := map[string]bool{}
	n := 0
	for i := range has.Blocks {
		b := &has.Blocks[i]
		switch {
		case !b.IsCall():
			continue
		case ids[b.ID]:
			return fmt.Errorf("call %s is there twice", b.ID)
		case !b.Complete() && !sim.config.Events:
			return fmt.Errorf("call %s is cut: %q", b.ID, b.Plain())
		case sim.config.Events && canceled(sim.r.res.Body, b.ID):
			continue
		case !b.Complete() && b.Closed:
			return fmt.Errorf("cut call %s was closed", b.ID)
		case !b.Complete():
			continue
		case n >= len(want) || want[n].Name != b.Name || !sameJSON(want[n].Args, string(b.Arguments())):
			return fmt.Errorf("call %d is %s %s, want one of %v", n, b.Name, b.Arguments(), want)
		}
		ids[b.ID] = true
		n++
	}
	return nil
}

func canceled(body []byte, id string) bool {
	return bytes.Contains(body, []byte(`{"type":"tool_call_cancel","id":"`+id)) || bytes.Contains(body, []byte(`{"id":"`+id+`","name"`))
}

// ended: a normal end is the whole answer, or the calls that were whole.
func (sim *simulation) ended(has *turn.Snapshot, faults int) error {
	if faults > 0 || !has.Finished() {
		return fmt.Errorf("a clean end with %d errors, finished %v", faults, has.Finished())
	}
	plans := sim.r.res.Plans()
	if n := len(plans); n > 0 && strings.HasPrefix(plans[n-1], "r2") {
		if calls, _ := has.Calls(); calls == 0 || has.End().Why != turn.ToolUse {
			return fmt.Errorf("ended as tool use with %d calls, %v", calls, has.End())
		}
		return nil
	}
	if got, want := string(has.Prose()), sim.answer.Text(); got != want && !bytes.Contains(sim.r.res.Body, []byte("event: stream_reset")) {
		return fmt.Errorf("text\n%q\nwant\n%q", got, want)
	}
	if calls := sim.runnable(has).calls; calls != len(sim.answer.Calls()) {
		return fmt.Errorf("%d calls, want %d", calls, len(sim.answer.Calls()))
	}
	want := map[faultinject.Finish]turn.Why{
		faultinject.FinishStop: turn.Stopped, faultinject.FinishTool: turn.ToolUse, faultinject.FinishLength: turn.Length,
	}[sim.answer.Finish]
	if has.End().Why != want {
		return fmt.Errorf("ended %v, want %v", has.End(), want)
	}
	return nil
}

func sameJSON(a, b string) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, []byte(a)) != nil || json.Compact(&y, []byte(b)) != nil {
		return false
	}
	return x.String() == y.String()
}

// Outline is a message in words, without what cannot be read back off the wire:
// where adjacent text of one kind was divided.
func Outline(s *turn.Snapshot) string {
	var out []string
	last := turn.BlockKind(0)
	for i := range s.Blocks {
		b := &s.Blocks[i]
		text := string(b.Plain())
		if b.IsCall() {
			out = append(out, fmt.Sprintf("%v %s %s %q complete=%v", b.Kind, b.ID, b.Name, text, b.Complete()))
			last = b.Kind
			continue
		}
		if text == "" && len(b.Raw) == 0 {
			continue
		}
		if b.Kind == last && (b.Kind == turn.Prose || b.Kind == turn.Refusal) {
			out[len(out)-1] += text
			continue
		}
		out = append(out, fmt.Sprintf("%v %s %s", b.Kind, b.Signature, text))
		last = b.Kind
	}
	for i, e := range s.Ends {
		if e.Why != turn.Unfinished {
			out = append(out, fmt.Sprintf("end %d %v", i, e.Why))
		}
	}
	return strings.Join(out, "\n")
}
