package relaytest

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/turn"
)

// Wire is a dialect as the simulator speaks it.
type Wire struct {
	Dialect dialect.Dialect
	Render  func(faultinject.Answer, faultinject.Options) [][]byte
	// Request is a streaming request without its closing brace; Limits are
	// members that may be added to it.
	Request string
	Extras  []string
	// Faults are passing errors in-band, Half is half an event, Marker the end
	// marker, Ping a sign of life.
	Faults             []string
	Half, Marker, Ping string
}

// scene is one scenario, drawn from a seed.
type scene struct {
	wire    Wire
	request []byte
	config  relay.Config
	answer  faultinject.Answer
	seams   []Seam
	plan    *rand.Rand // decides about attempts, in their order
	seed    uint64

	usage   bool
	variant faultinject.Variant
	leave   int // bytes after which the client leaves; 0: it stays
	stop    int // step at which the process stops; 0: it does not
	calm    int // attempt from which the provider behaves
}

func newScene(w Wire, seed uint64) *scene {
	r := rand.New(rand.NewPCG(seed, 0x5ce7e))
	sc := &scene{wire: w, seed: seed, plan: rand.New(rand.NewPCG(seed, 0xa77e))}
	sc.answer = drawAnswer(r)
	appends := w.Dialect.Traits().Appends
	if appends { // it has nothing but text
		sc.answer = faultinject.Answer{Finish: sc.answer.Finish, Blocks: []faultinject.Block{{Kind: faultinject.TextBlock, Text: drawText(r, 1+r.IntN(60))}}}
		if sc.answer.Finish == faultinject.FinishTool {
			sc.answer.Finish = faultinject.FinishStop
		}
	}
	request := w.Request
	for _, x := range w.Extras {
		if r.IntN(2) == 0 {
			request += "," + x
			sc.usage = sc.usage || strings.Contains(x, "include_usage")
		}
	}
	sc.request = []byte(request + "}")
	ability := dialect.Ability{Pings: r.IntN(4) == 0}
	switch r.IntN(3) {
	case 0:
		ability.Manners = []turn.Manner{turn.Prefill, turn.Asked}
		sc.seams = []Seam{Honest, Honest, RestartWhole}
	case 1:
		ability.Manners, ability.Echoes = []turn.Manner{turn.Prefill, turn.Asked}, true
		sc.seams = []Seam{Honest, Honest, EchoTail, RestartWhole, RestartDiverge}
	default:
		ability.Manners = []turn.Manner{turn.Asked}
		sc.seams = append([]Seam{Honest, Honest, Honest}, Seams...)
		if appends { // whatever the host
			sc.seams = []Seam{Honest, Honest, RestartWhole}
		}
	}
	sc.config = relay.Config{
		Targets: []relay.Target{{Name: "sim", Ability: ability}},
		Events:  r.IntN(5) == 0 && w.Dialect.Traits().EventsMode,
		Seed:    seed,
	}
	if r.IntN(8) == 0 {
		sc.config.Recoveries = 1
	}
	sc.variant = drawVariant(r)
	switch r.IntN(10) {
	case 0:
		sc.leave = 1 + r.IntN(4000)
	case 1:
		sc.stop = 1 + r.IntN(120)
	}
	sc.calm = 1 + r.IntN(6)
	return sc
}

func drawVariant(r *rand.Rand) faultinject.Variant {
	var v faultinject.Variant
	for _, f := range []*bool{
		&v.CRLF, &v.NoSpace, &v.MultiData, &v.NoDone, &v.MergeFinish, &v.UsageFinish, &v.RoleAlways,
		&v.Reasoning, &v.WholeCalls, &v.Obfuscation, &v.Comments, &v.NoPing, &v.ASCII, &v.SplitPairs,
	} {
		*f = r.IntN(7) == 0
	}
	return v
}

// vocabulary has words of every kind of writing: what is cut inside of them, doubled or
// lost, shows.
var vocabulary = []string{
	"stream", "provider", "message", "anchor", "seven", "quickly", "\"quoted\"", "back\\slash", "tab\there", "naïve", "Straße",
	"漢字", "日本語", "한국어", "Ελλάδα", "привет", "😀", "👨‍👩‍👧", "𝔘nicode", "e\u0301clair", "a\u2028b", "<tag>", "&amp;", "{brace}", "[[x]]", "1,000", "3.14",
}

func drawText(r *rand.Rand, words int) string {
	var b strings.Builder
	for i := range words {
		if i > 0 {
			b.WriteString([]string{" ", " ", " ", " ", ", ", ". ", "\n", "\n\n- "}[r.IntN(8)])
		}
		b.WriteString(vocabulary[r.IntN(len(vocabulary))])
		// A number keeps the text from repeating itself, which no seam could
		// tell from a model that does.
		fmt.Fprintf(&b, "%d", r.IntN(100_000))
	}
	return b.String()
}

func drawAnswer(r *rand.Rand) faultinject.Answer {
	a := faultinject.Answer{Finish: faultinject.FinishStop}
	if r.IntN(3) == 0 {
		a.Blocks = append(a.Blocks, faultinject.Block{Kind: faultinject.ThinkingBlock, Text: drawText(r, 1+r.IntN(20))})
	}
	calls := 0
	if r.IntN(2) == 0 {
		calls = 1 + r.IntN(3)
	}
	if calls == 0 || r.IntN(3) > 0 {
		a.Blocks = append(a.Blocks, faultinject.Block{Kind: faultinject.TextBlock, Text: drawText(r, 1+r.IntN(60))})
	}
	for i := range calls {
		args := "{}"
		if r.IntN(5) > 0 {
			args = fmt.Sprintf(`{"path":"/a/%d","text":%q,"n":[1,{"x":null}]}`, r.IntN(1000), fmt.Sprint("line ", r.IntN(1000), "\n\"q\" \u00e9"))
		}
		a.Blocks = append(a.Blocks, faultinject.Block{Kind: faultinject.ToolBlock, Name: fmt.Sprintf("tool_%d", i), Args: args})
		a.Finish = faultinject.FinishTool
	}
	if calls == 0 && r.IntN(6) == 0 {
		a.Finish = faultinject.FinishLength
	}
	return a
}

// reply is what the provider does with one attempt. It reports an error when the
// request is none that a provider could answer.
func (sc *scene) reply(q Request) (Reply, error) {
	r := sc.plan
	full := sc.answer
	if q.Derived {
		seam := sc.seams[r.IntN(len(sc.seams))]
		if q.N >= sc.calm {
			seam = Honest
		}
		said, asked, err := Asked(q.Body)
		if err != nil {
			return Reply{}, err
		}
		if !asked && !sc.wire.Dialect.Traits().Appends && r.IntN(6) == 0 {
			return Reply{Status: 400, Chunks: [][]byte{[]byte(`{"type":"error","error":{"type":"invalid_request_error","message":"This model does not support assistant message prefill."}}`)}}, nil
		}
		last, _ := utf8.DecodeLastRuneInString(said)
		switch {
		case len(said) < 60 && seam != Blank:
			seam = Honest // too little to tell one reading from another
		case seam == Diverge && unicode.Is(unicode.Han, last):
			seam = Honest // where words are not spaced, another thought shows no seam (splice)
		}
		if full, err = Continue(sc.answer, q.Body, "", seam, "[[COMPLETE]]"); err != nil {
			return Reply{}, err
		}
	}
	units := sc.wire.Render(full, faultinject.Options{
		Model: "sim", ID: fmt.Sprintf("id_%d_%d", sc.seed, q.N), Seed: sc.seed + uint64(q.N),
		IncludeUsage: sc.usage || q.Derived, Variant: sc.variant,
	})
	stream := joined(units)
	out := sc.treat(q.N, stream)
	return out, nil
}

func joined(units [][]byte) []byte {
	var b []byte
	for _, u := range units {
		b = append(b, u...)
	}
	return b
}

// treat sends a stream, or what a misbehaving provider makes of it.
func (sc *scene) treat(n int, stream []byte) Reply {
	r := sc.plan
	cut := stream[:r.IntN(len(stream)+1)]
	out := Reply{}
	if n < sc.calm {
		switch r.IntN(14) {
		case 0, 1:
			out.End.How = interrupt.EOF
		case 2, 3:
			out.End.How = []interrupt.Ending{interrupt.Reset, interrupt.Short, interrupt.GoneAway, interrupt.Garbled}[r.IntN(4)]
		case 4:
			out.Hang = true
		case 5:
			out.Hang, out.Pings, out.Every = true, []byte(sc.wire.Ping), time.Duration(1+r.IntN(20))*time.Second
			cut = sc.wholeUnits(cut)
		case 6:
			cut = append(sc.wholeUnits(cut), sc.wire.Half...)
			out.End.How = interrupt.Reset
		case 7:
			cut = append(sc.wholeUnits(cut), sc.wire.Faults[r.IntN(len(sc.wire.Faults))]...)
		case 8:
			cut = append(sc.wholeUnits(cut), sc.wire.Marker...)
		case 9:
			cut = append(sc.wholeUnits(cut), "data: {\"garbage\n\n"...)
		case 10:
			return Reply{Fail: &interrupt.Ended{How: interrupt.NoConnection, NotSent: r.IntN(2) == 0}}
		case 11:
			status := []int{429, 500, 502, 503, 529}[r.IntN(5)]
			h := map[string]string{}
			if r.IntN(2) == 0 {
				h["Retry-After"] = fmt.Sprint(r.IntN(90))
			}
			return Reply{Status: status, Header: h, Chunks: [][]byte{[]byte(`{"error":{"message":"busy"}}`)}}
		case 12:
			cut = []byte([]string{"", ": only\n\n", "<html>sign in</html>", `{"error":{"message":"down","type":"server_error"}}`, "\n\n"}[r.IntN(5)])
		default:
			cut = stream
		}
	} else {
		cut = stream
	}
	out.Chunks = sc.reads(cut)
	return out
}

// reads cuts a stream as a network might.
func (sc *scene) reads(b []byte) [][]byte {
	r := sc.plan
	most := []int{40, 40, 700, 700, 4096, 1 << 16}[r.IntN(6)]
	if len(b) < 4<<10 && r.IntN(3) == 0 {
		most = 3
	}
	var out [][]byte
	for len(b) > 0 {
		n := min(len(b), 1+r.IntN(most))
		out = append(out, b[:n])
		b = b[n:]
	}
	return out
}

// wholeUnits is b without the half unit at its end.
func (sc *scene) wholeUnits(b []byte) []byte {
	n := 0
	for _, u := range raws(sc.wire.Dialect, b) {
		n += len(u)
	}
	return append([]byte(nil), b[:n]...)
}
