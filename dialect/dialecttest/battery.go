package dialecttest

import (
	"bytes"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// Run plays the battery. Every case must be a stream without a decode error; at
// least one must hold ordinary text.
func Run(t *testing.T, d dialect.Dialect, cases []Case) {
	t.Helper()
	texts := 0
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			b := load(t, d, c)
			t.Run("pass-through keeps every byte", b.passThrough)
			t.Run("a cut anywhere is not an end", b.prefixClosed)
			t.Run("a fold may pause anywhere", b.foldSplits)
			t.Run("a snapshot keeps nothing of the event", b.foldOwns)
			t.Run("a later attempt continues the message", b.rejoin)
			t.Run("a held call is emitted whole", b.emit)
			t.Run("a missing end is rendered", b.finish)
			t.Run("text decodes without allocation", func(t *testing.T) { texts += b.allocs(t) })
		})
	}
	if texts == 0 {
		t.Error("no case holds an ordinary text event")
	}
	t.Run("unknown events survive", func(t *testing.T) { unknown(t, d, cases[0]) })
	t.Run("failure is a fault", func(t *testing.T) { fail(t, d, cases[0]) })
	t.Run("heartbeat says nothing", func(t *testing.T) { heartbeat(t, d, cases[0]) })
}

type bench struct {
	d      dialect.Dialect
	c      Case
	req    *dialect.Request
	units  []sse.Event
	deltas [][]turn.Delta
	all    *turn.Snapshot
}

func load(t *testing.T, d dialect.Dialect, c Case) *bench {
	t.Helper()
	b := &bench{d: d, c: c, req: Parse(t, d, c.Request), units: UnitsOf(d, c.Stream)}
	var err error
	if b.deltas, err = Decode(d, b.req, b.units); err != nil {
		t.Fatal(err)
	}
	if b.all, err = Fold(b.deltas); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) passThrough(t *testing.T) {
	var got []byte
	for _, e := range b.units {
		got = append(got, e.Raw...)
	}
	if !bytes.Equal(got, b.c.Stream) {
		t.Error("units do not reassemble to the stream")
	}
}

// prefixClosed: the ends of all choices of the request are needed; a client that
// asked for n=2 is not served by one of them.
func (b *bench) prefixClosed(t *testing.T) {
	last := -1
	for i, ds := range b.deltas {
		for _, d := range ds {
			if d.Kind == turn.Finish {
				last = i
			}
		}
	}
	for k := range last + 1 {
		s, err := Fold(b.deltas[:k])
		if err != nil {
			t.Fatal(err)
		}
		if s.Finished() && len(s.Ends) >= b.req.N {
			t.Errorf("cut before unit %d of %d reads as finished", k, len(b.units))
		}
	}
}

func (b *bench) foldSplits(t *testing.T) {
	want := Format(b.all) + FormatUsage(b.all.Usage)
	for k := range len(b.deltas) {
		first, err := Fold(b.deltas[:k])
		if err != nil {
			t.Fatal(err)
		}
		before := Format(first)
		s := first.Clone()
		if err := foldInto(s, b.deltas[k:]); err != nil {
			t.Fatalf("cut at %d: %v", k, err)
		}
		if got := Format(s) + FormatUsage(s.Usage); got != want {
			t.Fatalf("cut at %d\ngot:\n%swant:\n%s", k, got, want)
		}
		if Format(first) != before {
			t.Fatalf("cut at %d: the rest was folded into the original of a clone", k)
		}
	}
}

// foldOwns decodes from one buffer that is overwritten after each event, as the
// scanner's is.
func (b *bench) foldOwns(t *testing.T) {
	dec, s := b.d.NewDecoder(b.req), new(turn.Snapshot)
	for _, e := range b.units {
		data := bytes.Clone(e.Data)
		ds, err := dec.Decode(nil, sse.Event{Name: e.Name, Data: data, Raw: e.Raw})
		if err != nil {
			t.Fatal(err)
		}
		if err := foldInto(s, [][]turn.Delta{ds}); err != nil {
			t.Fatal(err)
		}
		for i := range data {
			data[i] = '#'
		}
	}
	if got, want := Format(s), Format(b.all); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}

func (b *bench) rejoin(t *testing.T) {
	want := Format(b.all)
	again := b.units
	if b.c.ID != "" {
		again = renamed(b.d, b.c.Stream, b.c.ID)
	}
	for k := range len(b.units) {
		head, err := Fold(b.deltas[:k])
		if err != nil {
			t.Fatal(err)
		}
		if head.Head == nil {
			continue // nothing to belong to: the later attempt is the first
		}
		client, err := Rejoin(b.d, b.req, b.units[:k], again)
		if err != nil {
			t.Fatalf("cut at %d: %v", k, err)
		}
		s := Read(t, b.d, b.req, client)
		if got := Format(s); got != want {
			t.Fatalf("cut at %d\ngot:\n%swant:\n%s\nclient:\n%s", k, got, want, client)
		}
		if b.req.IncludeUsage && FormatUsage(s.Usage) != FormatUsage(b.all.Usage) {
			t.Fatalf("cut at %d: usage: got %s want %s", k, FormatUsage(s.Usage), FormatUsage(b.all.Usage))
		}
		if b.c.ID != "" && bytes.Contains(client, []byte(otherID)) {
			t.Fatalf("cut at %d: the later attempt's id shows:\n%s", k, client)
		}
	}
}

func (b *bench) allocs(t *testing.T) int {
	n := 0
	dst := make([]turn.Delta, 0, 16)
	dec := b.d.NewDecoder(b.req)
	for i, e := range b.units {
		if _, err := dec.Decode(dst, e); err != nil {
			t.Fatal(err)
		}
		if ds := b.deltas[i]; len(ds) != 1 || ds[0].Kind != turn.Text || n == 20 {
			continue
		}
		n++
		got := testing.AllocsPerRun(20, func() {
			if _, err := dec.Decode(dst, e); err != nil {
				t.Error(err)
			}
		})
		if got != 0 {
			t.Errorf("unit %d: %v allocations: %s", i, got, e.Data)
		}
	}
	return n
}
