package relay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

// A long structured answer, cut at every byte, is the very document it would have
// been, and fits its schema: in every dialect, however the model goes on. `make
// battery` cuts at every byte, an ordinary run at a sample of them.

// catalogueSchema is kept to what all providers take.
const catalogueSchema = `{"type":"object","additionalProperties":false,"required":["title","items","tree","matrix","end"],"properties":{` +
	`"title":{"type":"string"},` +
	`"items":{"type":"array","minItems":20,"items":{"type":"object","additionalProperties":false,"required":["id","name","note","price","tags","flags"],"properties":{` +
	`"id":{"type":"integer"},"name":{"type":"string","minLength":3},"note":{"type":"string"},"price":{"type":"number"},` +
	`"tags":{"type":"array","items":{"type":"string"}},` +
	`"flags":{"type":"object","additionalProperties":false,"required":["on"],"properties":{"on":{"type":"boolean"},"size":{"type":"string","enum":["s","m","l"]}}}}}},` +
	`"tree":{"type":"object"},` +
	`"matrix":{"type":"array","items":{"type":"array","items":{"type":"integer"}}},` +
	`"end":{"type":"string","enum":["done"]}}}`

// catalogue is a document of that schema, of some 9 KB: nested, in several scripts,
// with every kind of escape, and spaced as a model spaces it.
func catalogue() string {
	names := []string{"Zweiundzwanzig Äpfel", "漢字とかな", "привет, мир", "한국어 사전", "naïve café", "👩‍🚀 and 🦊", "a\\\"quote\\\" and a \\\\ slash", "\\u00e9\\u4e2d\\ud83d\\ude00 escaped", "tab\\tand\\nline\\r\\n", "\\/solidus\\/ \\b\\f", "<tag> & {brace} [bracket]", "```json fence``` and → arrows ←"}
	notes := []string{"", "plain", "two  spaces ", "ends in a backslash \\\\", "}]\\\"},{", "null"}
	var b strings.Builder
	b.WriteString("{\n  \"title\": \"Catalogue of \\\"things\\\" №1\",\n  \"items\": [")
	for i := range 54 {
		if i > 0 {
			b.WriteString(",")
		}
		tags := `[]`
		if i%3 > 0 {
			tags = fmt.Sprintf(`["t%d", "%s"]`, i*7, names[(i+5)%len(names)])
		}
		flags := fmt.Sprintf(`{"on": %v}`, i%2 == 0)
		if i%4 == 0 {
			flags = fmt.Sprintf(`{"on":%v,"size":"%c"}`, i%3 == 0, "sml"[i%3])
		}
		fmt.Fprintf(&b, "\n    {\"id\": %d, \"name\": \"%s %d\", \"note\": \"%s\",\n     \"price\": %s, \"tags\": %s, \"flags\": %s}",
			1000+i*37, names[i%len(names)], i, notes[i%len(notes)], []string{"1.5", "-0.25e+3", "17", "0", "1E-7", "123456789.125"}[i%6], tags, flags)
	}
	b.WriteString("\n  ],\n  \"tree\": ")
	for i := range 24 {
		fmt.Fprintf(&b, `{"level %d": `, i)
	}
	b.WriteString("[{}, [], null, true, false]")
	b.WriteString(strings.Repeat("}", 24))
	b.WriteString(",\n  \"matrix\": [")
	for i := range 12 {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "[%d, %d,\t%d]", i*i*i, -i*31, i*1234567)
	}
	b.WriteString("],\n  \"end\": \"done\"\n}")
	return b.String()
}

// cutAt is the stream of doc as far as byte k of it: a byte inside a character cuts
// the event that holds it.
func (a author) cutAt(doc string, k int) string {
	whole := k
	for whole > 0 && whole < len(doc) && !utf8.RuneStart(doc[whole]) {
		whole--
	}
	s := a.begin("one")
	if whole > 0 {
		s += a.text("one", doc[:whole])
	}
	if whole < k {
		_, w := utf8.DecodeRuneInString(doc[whole:])
		next := a.text("one", doc[whole:whole+w])
		at := strings.Index(next, doc[whole:whole+w])
		s += next[:at+k-whole]
	}
	return s
}

// going is how a model goes on.
type going struct {
	name   string
	manner turn.Manner
	echoes bool
	seam   relaytest.Seam
	wrap   func(rest string) string
	twice  bool // it is cut once more, half way through the rest
}

var goings = []going{
	{name: "exactly", manner: turn.Prefill, seam: relaytest.Honest},
	{name: "with the anchor", manner: turn.Asked, seam: relaytest.Honest},
	{name: "exactly, cut twice", manner: turn.Prefill, seam: relaytest.Honest, twice: true},
	{name: "with the anchor, cut twice", manner: turn.Asked, seam: relaytest.Honest, twice: true},
	{name: "with the whole again", manner: turn.Prefill, seam: relaytest.RestartWhole},
	{name: "with the whole again, asked", manner: turn.Asked, seam: relaytest.RestartWhole},
	{name: "with an echo", manner: turn.Prefill, echoes: true, seam: relaytest.EchoTail},
	{name: "behind a preamble", manner: turn.Asked, seam: relaytest.Preamble},
	{name: "with something behind the end", manner: turn.Prefill, seam: relaytest.Honest, wrap: func(rest string) string { return rest + "\n\nI hope this helps!" }},
}

// broken is the stream of doc, cut at byte k by one thing or another. What a provider
// says behind whole events cannot stand behind half a one.
func (a author) broken(doc string, k int) relaytest.Reply {
	c := cuts[k%len(cuts)]
	if c.extra != nil && k < len(doc) && !utf8.RuneStart(doc[k]) {
		c = cuts[k%3]
	}
	r := relaytest.Reply{Chunks: [][]byte{[]byte(a.cutAt(doc, k))}, End: c.end, Hang: c.hang}
	if c.extra != nil {
		r.Chunks = append(r.Chunks, c.extra(a.family))
	}
	if c.pings {
		r.Pings, r.Every = []byte(a.ping), 5*time.Second
	}
	return r
}

// play cuts doc at byte k and returns what the client has.
func (a author) play(doc string, k int, g going) (relaytest.Result, error) {
	var bad error
	seams := 0
	ability := dialect.Ability{Manners: []turn.Manner{g.manner}, Echoes: g.echoes}
	if g.manner == turn.Prefill {
		ability.Manners = append(ability.Manners, turn.Asked)
	}
	w := relaytest.World{Dialect: a.d, Config: relay.Config{Targets: []relay.Target{{Name: "t", Ability: ability}}}}
	answer := faultinject.Answer{Finish: faultinject.FinishStop, Blocks: []faultinject.Block{{Kind: faultinject.TextBlock, Text: doc}}}
	res, err := w.Run([]byte(a.request), func(q relaytest.Request) relaytest.Reply {
		id := fmt.Sprint("again", q.N)
		switch {
		case q.N == 1:
			return a.broken(doc, k)
		case !q.Derived:
			return fin(a.begin(id), a.text(id, doc), a.end(id, doc))
		case bytes.Contains(q.Body, []byte("minItems")):
			bad = fmt.Errorf("the continuation carries the schema")
		}
		seam := g.seam
		if seams++; seams > 1 {
			seam = relaytest.Honest
		}
		rest, err := relaytest.Continue(answer, q.Body, "", seam, "[[COMPLETE]]")
		if err != nil {
			bad = err
			return refusal(400, "{}")
		}
		say := rest.Text()
		if g.wrap != nil {
			say = g.wrap(say)
		}
		if half := len(say) / 2; g.twice && seams == 1 {
			for !utf8.RuneStart(say[half]) {
				half--
			}
			return rst(a.begin(id), a.text(id, say[:half]))
		}
		return fin(a.begin(id), a.text(id, say), a.end(id, say))
	})
	switch {
	case err == nil && bad != nil:
		err = bad
	case err == nil && res.Broken != "":
		err = fmt.Errorf("law: %s", res.Broken)
	}
	return res, err
}

// everyByte is the distance of cuts: 1 in full runs, else sample. Each dialect begins
// its sample at another byte.
func everyByte(sample int) int {
	if *everyBoundary {
		return 1
	}
	return sample
}

func TestAStructuredAnswerCutEverywhereIsWhole(t *testing.T) {
	doc := catalogue()
	fits := validator(t)
	if len(doc) < 8<<10 {
		t.Fatalf("the document has %d bytes", len(doc))
	}
	if err := fits(doc); err != nil {
		t.Fatalf("uncut: %v", err)
	}
	for n, a := range authors {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			req := mustParse(a.d, []byte(a.request))
			if !req.Structured || len(req.Schema) == 0 {
				t.Fatal("the request is not read as structured")
			}
			cuts, main := 0, false
			for i, g := range goings {
				if a.d.Traits().Appends && g.manner == turn.Asked {
					continue // nothing is asked there
				}
				step := 797 + 10*i // odd, and not of 5: it meets every cut
				if *everyBoundary {
					step = 389 + 2*i
				}
				if g.manner == a.main && !main {
					step, main = everyByte(97), true
				}
				for k := n % step; k <= len(doc); k += step {
					cuts++
					res, err := a.play(doc, k, g)
					if err == nil {
						err = a.check(req, res, doc, fits, cuts%64 == 0)
					}
					if err != nil {
						t.Fatalf("cut at byte %d (…%q), going on %s: %v\nplans %v", k, doc[max(0, k-40):k], g.name, err, res.Plans())
					}
					seen.note(a.as(), []string{ofStructured}, res)
				}
			}
			seen.played("structured " + a.name)
			t.Logf("%d cuts of %d bytes", cuts, len(doc))
		})
	}
}

// check: the client has one finished message of exactly that document. The official
// SDK reads it when asked to, since that takes long.
func (a author) check(req *dialect.Request, res relaytest.Result, doc string, fits func(string) error, sdk bool) error {
	if res.End != relay.Clean {
		return fmt.Errorf("ended %v: %s", res.End, res.Outcome())
	}
	s, faults, err := relaytest.Fold(a.d, req, res.Body)
	if err != nil || len(faults) > 0 || !s.Finished() || s.End().Why != turn.Stopped {
		return fmt.Errorf("unfinished, %v, %v", faults, err)
	}
	got := string(s.Prose())
	if sdk {
		m, err := a.read(res.Body)
		if err != nil || m.text != got {
			return fmt.Errorf("the SDK reads %d bytes, %w", len(m.text), err)
		}
	}
	if got != doc {
		n := 0
		for n < min(len(got), len(doc)) && got[n] == doc[n] {
			n++
		}
		return fmt.Errorf("differs at byte %d: has …%q, want …%q", n, got[max(0, n-20):min(len(got), n+40)], doc[max(0, n-20):min(len(doc), n+40)])
	}
	return fits(got)
}

// validator checks a document against the schema, with no part of ours.
func validator(t *testing.T) func(doc string) error {
	t.Helper()
	raw, err := jsonschema.UnmarshalJSON(strings.NewReader(catalogueSchema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("https://test.invalid/s", raw); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("https://test.invalid/s")
	if err != nil {
		t.Fatal(err)
	}
	return func(doc string) error {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(doc))
		if err != nil {
			return err
		}
		return schema.Validate(v)
	}
}

// A document that is the arguments of a tool is held until it is whole: a cut inside
// starts it over, one behind its end is tool use, and the client never gets half.
func TestAStructuredToolCutEverywhereIsWhole(t *testing.T) {
	doc, fits := compact(catalogue()), validator(t)
	for _, w := range []wire{chatWire, messagesWire} {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			req := mustParse(w.d, []byte(w.request))
			for k := len(doc) % 41; k <= len(doc); k += everyByte(41) {
				if k < len(doc) && !utf8.RuneStart(doc[k]) {
					continue
				}
				p := w.play(t, rst(w.begin("one")+w.tool("one", "c1", "f")+w.args("one", doc[:k])), fin(w.begin("two")+w.tool("two", "c2", "f")+w.args("two", doc)+w.called("two")))
				s, faults, err := relaytest.Fold(w.d, req, p.Body)
				if err != nil || len(faults) > 0 || p.End != relay.Clean || s.End().Why != turn.ToolUse {
					t.Fatalf("cut at byte %d: %v, %v, %v", k, p.End, faults, err)
				}
				complete, unfinished := s.Calls()
				if complete != 1 || unfinished != 0 {
					t.Fatalf("cut at byte %d: %d calls, %d unfinished", k, complete, unfinished)
				}
				args := string(s.Last().Arguments())
				if err := fits(args); args != doc || err != nil {
					t.Fatalf("cut at byte %d: %v\n%s", k, err, args)
				}
				if again := k < len(doc); (len(p.Requests) == 2) != again {
					t.Fatalf("cut at byte %d of %d: %d requests", k, len(doc), len(p.Requests))
				}
			}
		})
	}
	if !json.Valid([]byte(doc)) || !jsonwalk.Valid([]byte(doc)) {
		t.Error("the document is none")
	}
}
