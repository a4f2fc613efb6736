package dialecttest

import (
	"bytes"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/turn"
)

// emit renders every complete call of the turn as if it had been held back: after
// whatever came before its first byte.
func (b *bench) emit(t *testing.T) {
	for n := range b.all.Blocks {
		want := &b.all.Blocks[n]
		if !want.IsCall() || !want.Complete() {
			continue
		}
		var client []byte
		said := new(turn.Snapshot)
		for i, ds := range b.deltas {
			if opens(ds, n) {
				break
			}
			client = append(client, b.units[i].Raw...)
			if err := foldInto(said, [][]turn.Delta{ds}); err != nil {
				t.Fatal(err)
			}
		}
		if said.Head == nil || len(said.Blocks) != n {
			continue // opened together with its head, or with its neighbour
		}
		said.Blocks = append(said.Blocks, *want)
		client = b.d.Emit(client, b.req, said, n)
		client = b.d.Finish(client, b.req, said, dialect.Ending{Why: turn.ToolUse})
		s := Read(t, b.d, b.req, client)
		if len(s.Blocks) != n+1 {
			t.Fatalf("got:\n%s\nclient:\n%s", Format(s), client)
		}
		got := s.Blocks[n]
		if got.ID != want.ID || got.Name != want.Name || got.Index != want.Index || !got.Complete() || !got.Closed ||
			!bytes.Equal(got.Arguments(), want.Arguments()) {
			t.Errorf("block %d: got:\n%swant it as in:\n%s", n, Format(s), Format(b.all))
		}
		if s.End().Why != turn.ToolUse {
			t.Errorf("ends with %s", s.End().Why)
		}
	}
}

func opens(ds []turn.Delta, n int) bool {
	for _, d := range ds {
		if d.Kind == turn.Open && d.Block == n {
			return true
		}
	}
	return false
}

// finish takes the end of the turn away and lets the dialect render it.
func (b *bench) finish(t *testing.T) {
	if !b.all.Finished() || len(b.all.Ends) != 1 {
		t.Log("the turn has no single end")
		return
	}
	end := b.all.End()
	if end.Why == turn.Broken {
		t.Log("the provider's end is a failure")
		return
	}
	var client []byte
	said := new(turn.Snapshot)
	for i, ds := range b.deltas {
		if finishes(ds) {
			break
		}
		client = append(client, b.units[i].Raw...)
		if err := foldInto(said, [][]turn.Delta{ds}); err != nil {
			t.Fatal(err)
		}
	}
	if said.Head == nil {
		t.Log("the head comes with the finish")
		return
	}
	client = b.d.Finish(client, b.req, said, dialect.Ending{Why: end.Why, Reason: end.Reason, Usage: b.all.Usage})
	s := Read(t, b.d, b.req, client)
	if !s.Finished() || s.End() != end {
		t.Errorf("ends with %v, want %v:\n%s", s.End(), end, client)
	}
	if s.Terminated != b.d.Traits().Marker {
		t.Errorf("terminated = %v:\n%s", s.Terminated, client)
	}
	for i := range s.Blocks {
		if !s.Blocks[i].Closed {
			t.Errorf("block %d stayed open", i)
		}
	}
	if b.req.IncludeUsage && b.all.Usage.Known && FormatUsage(s.Usage) != FormatUsage(b.all.Usage) {
		t.Errorf("usage: got %s want %s", FormatUsage(s.Usage), FormatUsage(b.all.Usage))
	}
}

func finishes(ds []turn.Delta) bool {
	for _, d := range ds {
		if d.Kind == turn.Finish {
			return true
		}
	}
	return false
}

const unknownData = `{"type":"event_of_a_later_year","payload":{"n":1}}`

func unknown(t *testing.T, d dialect.Dialect, c Case) {
	req := Parse(t, d, c.Request)
	for _, name := range []string{"", "event_of_a_later_year"} {
		e := UnitsOf(d, c.frame(nil, name, []byte(unknownData)))[0]
		ds, err := d.NewDecoder(req).Decode(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		if len(ds) != 1 || ds[0].Kind != turn.Opaque || string(ds[0].Raw) != unknownData {
			t.Fatalf("decoded to %v", ds)
		}
		said := Read(t, d, req, c.Stream)
		out := d.Rewrite(nil, req, e, ds, said)
		if us := UnitsOf(d, out); len(us) != 1 || !bytes.Contains(us[0].Data, []byte(unknownData)) {
			t.Errorf("rewritten to %q", out)
		}
	}
}

func fail(t *testing.T, d dialect.Dialect, c Case) {
	req := Parse(t, d, c.Request)
	said := Read(t, d, req, c.Stream)
	said.Truncate(len(said.Blocks))
	f := dialect.Failure{Cause: "TruncatedEOF", Reason: "budget_spent", Type: "overloaded_error", Status: 529, Message: "a \"quoted\" message"}
	faults := 0
	dec := d.NewDecoder(req)
	for _, e := range UnitsOf(d, d.Fail(nil, said, f)) {
		ds, err := dec.Decode(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range ds {
			switch x.Kind {
			case turn.Fault:
				faults++
				if x.Fault.Type != f.Type {
					t.Errorf("fault type %q, want the provider's %q", x.Fault.Type, f.Type)
				}
			case turn.Finish, turn.Terminal:
				t.Errorf("a failure renders a %s", x.Kind)
			}
		}
	}
	if faults != 1 {
		t.Errorf("%d faults", faults)
	}
	if status, body := d.ErrorBody(f); status != f.Status || !bytes.Contains(body, []byte(f.Type)) {
		t.Errorf("error body: %d %s", status, body)
	}
	if status, _ := d.ErrorBody(dialect.Failure{}); status != 502 {
		t.Errorf("status without a fault = %d", status)
	}
}

func heartbeat(t *testing.T, d dialect.Dialect, c Case) {
	req := Parse(t, d, c.Request)
	out := d.Heartbeat(nil, req, &turn.Snapshot{})
	if len(out) == 0 {
		t.Fatal("no heartbeat")
	}
	for _, e := range UnitsOf(d, out) {
		ds, err := d.NewDecoder(req).Decode(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range ds {
			if x.Kind != turn.Pulse {
				t.Errorf("heartbeat decodes to %s", x.Kind)
			}
		}
	}
	beat := append(d.Heartbeat(nil, req, &turn.Snapshot{}), c.Stream...)
	if got, want := Format(Read(t, d, req, beat)), Format(Read(t, d, req, c.Stream)); got != want {
		t.Errorf("a heartbeat changes the stream:\n%s", got)
	}
}
