package relay_test

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/anthropic"
	"github.com/unbroken-llm/unbroken/dialect/openaichat"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// roundabout are dialects whose decoders do not tell what they know again, so that every
// event goes the long way; counted ones tell, and count.
type (
	roundaboutChat     struct{ openaichat.Dialect }
	roundaboutMessages struct{ anthropic.Dialect }
	countedChat        struct {
		openaichat.Dialect
		n *int
	}
	countedMessages struct {
		anthropic.Dialect
		n *int
	}
	onlyDecoder struct{ dialect.Decoder }
	counting    struct {
		dialect.Repeater
		n *int
	}
)

func (d roundaboutChat) NewDecoder(r *dialect.Request) dialect.Decoder {
	return onlyDecoder{d.Dialect.NewDecoder(r)}
}

func (d roundaboutMessages) NewDecoder(r *dialect.Request) dialect.Decoder {
	return onlyDecoder{d.Dialect.NewDecoder(r)}
}

func (d countedChat) NewDecoder(r *dialect.Request) dialect.Decoder {
	return counting{d.Dialect.NewDecoder(r).(dialect.Repeater), d.n}
}

func (d countedMessages) NewDecoder(r *dialect.Request) dialect.Decoder {
	return counting{d.Dialect.NewDecoder(r).(dialect.Repeater), d.n}
}

func (c counting) More(e sse.Event) (turn.More, bool) {
	m, ok := c.Repeater.More(e)
	if ok {
		*c.n++
	}
	return m, ok
}

// mayhem is what a provider says in any order, mostly text that goes on.
func mayhem(r *rand.Rand, w wire) string {
	const id = "one"
	halves := [2]string{`half \ud83d`, `\ude00 other`}
	raw := func(s string) string { return strings.ReplaceAll(w.text(id, "@"), "@", s) }
	var b strings.Builder
	b.WriteString(w.begin(id))
	for range 3 + r.IntN(12) {
		for range r.IntN(6) {
			b.WriteString(w.text(id, []string{"a", " word", "\n\n", `"quoted"`, "ünï", strings.Repeat("long ", 30)}[r.IntN(6)]))
		}
		switch r.IntN(16) {
		case 0:
			b.WriteString(raw(halves[0]) + w.beat + raw(halves[1]))
		case 1:
			b.WriteString(raw(halves[r.IntN(2)]))
		case 2:
			b.WriteString(w.beat)
		case 3:
			b.WriteString(w.text(id, ""))
		case 4:
			b.WriteString(w.tool(id, "call_1", "f") + w.args(id, `{"p":`) + w.args(id, `1`) + w.args(id, `}`) + w.args(id, ` `))
		case 5:
			b.WriteString(w.tool(id, "call_1", "f") + w.args(id, `{"p":`))
		case 6:
			b.WriteString(strings.ReplaceAll(w.text(id, "crlf"), "\n", "\r\n") + strings.ReplaceAll(w.text(id, "crlf"), "\n", "\r\n"))
		case 7:
			b.WriteString(strings.ReplaceAll(w.text(id, "odd"), `"index":0`, `"index":7`))
		case 8:
			b.WriteString("data: {\"nobody\":\"knows\"}\n\n")
		case 9:
			b.WriteString("event: named\n" + w.text(id, "named"))
		case 10:
			if w.name == chatWire.name {
				b.WriteString(rc(id, "hm") + rc(id, " so") + use(id, 3, 4))
			} else {
				b.WriteString(stop(0) + tx(0, "behind the end") + bThink(1) + kx(1, "hm") + kx(1, "so") + sgn(1, "c2ln") + bText(2) + tx(2, "x") + tx(2, "y"))
			}
		}
	}
	ends := []string{w.end(id), w.called(id), w.end(id) + w.text(id, "late"), ""}
	if w.name == chatWire.name {
		ends = append(ends, fr(id, "stop")+w.text(id, "late"), use(id, 3, 4)+done, use(id, 3, 4)+w.text(id, "and")+w.text(id, " on")+done)
	}
	b.WriteString(ends[r.IntN(len(ends))])
	return b.String()
}

// TestShortWayIsTheLongWay: text that goes on is not decoded, folded and judged like other
// events, and nothing tells, at no step: not what leaves, not what is persisted, not when
// the stream wants to be roused.
func TestShortWayIsTheLongWay(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		went, long := 0, w
		w.d, long.d = countedChat{n: &went}, roundaboutChat{}
		if w.name != chatWire.name {
			w.d, long.d = countedMessages{n: &went}, roundaboutMessages{}
		}
		r := rand.New(rand.NewPCG(7, 7))
		for n := range 400 {
			c := relay.Config{Seed: 1, Events: n%4 == 0, MaxTurn: []int{0, 0, 0, 900}[r.IntN(4)]}
			if n%3 == 0 {
				c.Targets = []relay.Target{{Ability: dialect.Ability{NoFinish: true}}}
			}
			a, b := run(t, w, c), run(t, long, c)
			for range 2 { // attempts
				a.open(200)
				b.open(200)
				attempt := a.n
				for rest := mayhem(r, w); rest != "" && a.n == attempt && !a.s.Done(); {
					cut := min(len(rest), 1+r.IntN(700))
					a.now = a.now.Add(time.Duration(r.IntN(40)) * time.Millisecond)
					b.now = a.now
					b.feed(rest[:cut])
					if fa, fb := a.feed(rest[:cut]), b.fx[len(b.fx)-1]; !reflect.DeepEqual(fa, fb) {
						t.Fatalf("case %d, behind %q:\n got %+v\nwant %+v", n, rest[:cut], fa, fb)
					}
					if got, want := a.s.Deadline(), b.s.Deadline(); !got.Equal(want) {
						t.Fatalf("case %d, behind %q: deadline %v, want %v", n, rest[:cut], got, want)
					}
					rest = rest[cut:]
				}
				if a.n == attempt || a.s.Done() {
					break
				}
				a.wait(5 * time.Second)
				b.wait(5 * time.Second)
			}
			if a.got != b.got || string(a.log) != string(b.log) || !reflect.DeepEqual(a.note, b.note) {
				t.Fatalf("case %d: the streams differ at their end", n)
			}
		}
		if went < 1000 {
			t.Errorf("%d events went the short way", went)
		}
	})
}

// TestTextPassesInItsOwnMemory: what passes as it came is not copied, however many events
// come at once, until something of ours leaves with it.
func TestTextPassesInItsOwnMemory(t *testing.T) {
	each(t, func(t *testing.T, w wire) {
		h := run(t, w, relay.Config{})
		h.open(200)
		h.feed(w.begin("one") + w.text("one", "Hello"))
		b := []byte(w.text("one", " world") + w.beat + w.text("one", ", it is") + w.text("one", " me."))
		fx := h.s.Feed(h.now, h.n, b)
		if len(fx.Client) != len(b) || &fx.Client[0] != &b[0] {
			t.Errorf("%d of %d bytes left, or a copy", len(fx.Client), len(b))
		}
		if whole := string(b); cap(fx.Client) > len(fx.Client) || string(fx.Client) != whole {
			t.Errorf("%q can be appended to, or is not what came", fx.Client)
		}
		half := len(b) - 9
		h.s.Feed(h.now, h.n, b[:half])
		if fx = h.s.Feed(h.now, h.n, b[half:]); string(fx.Client) != w.text("one", " me.") {
			t.Errorf("the rest of an event that came in two pieces: %q", fx.Client)
		}
	})
}
