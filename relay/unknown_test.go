package relay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/sse"
)

// Events, items, parts and fields of a later year: they pass, in front of a cut and
// behind it, and survive the splice. What would have to be said again, and cannot be,
// is a refusal with its name.

// newcomer is what a provider of a later year says in a dialect; mark tells one from
// another.
type newcomer struct {
	author
	// event says nothing about the message; part is inside of the open text.
	event, part func(mark string) string
	// item opens behind the text that was said, and rest closes it. ends is the end of a
	// message with that item behind its text; nil: as any.
	item, rest, ends func(id, said, mark string) string
	refusal          string
}

// The two attempts and what they say.
const (
	one, two     = "one", "two"
	said1, said2 = "Hello, this is the first half and ", "this is what the other one said."
)

func newcomers() (all []newcomer) {
	text := func(f func(mark string) string) func(_, _, mark string) string {
		return func(_, _, mark string) string { return f(mark) }
	}
	later := func(mark string) string { return `"later":"` + mark + `"` }
	mystery := func(mark string) string { return event("mystery", `{"type":"mystery",`+later(mark)+`}`) }
	odd := func(mark string) string { return delta(0, `"type":"mystery_delta",`+later(mark)) }
	hologram := func(mark string) string { return stop(0) + block(1, `"type":"hologram",`+later(mark)) }
	nothing := func(string) string { return "" }
	holo := func(mark string) string { return `{"id":"holo_1","type":"hologram_call",` + later(mark) + `}` }
	for _, n := range []newcomer{
		{
			author: author{family: chat}, event: mystery, refusal: "audio",
			part: func(mark string) string { return chunk("one", `"hologram":{`+later(mark)+`}`, "null") },
			item: text(func(mark string) string { return chunk("one", `"audio":{"id":"a",`+later(mark)+`}`, "null") }), rest: text(nothing),
		},
		{author: author{family: legacy}, event: func(mark string) string { return "data: {\"mystery\":{" + later(mark) + "}}\n\n" }},
		{
			author: author{family: responses}, refusal: "hologram_call",
			part: func(mark string) string {
				return responseEvent(0, "response.mystery.delta", `"output_index":0,"content_index":0,`+later(mark))
			},
			event: func(mark string) string { return responseEvent(0, "response.mystery", later(mark)) },
			item: func(id, said, mark string) string {
				whole := endResponse(id, said)
				return whole[:strings.Index(whole, "event: response.completed")] + responseEvent(0, "response.output_item.added", `"output_index":1,"item":`+holo(mark))
			},
			rest: text(func(mark string) string {
				return responseEvent(0, "response.output_item.done", `"output_index":1,"item":`+holo(mark))
			}),
			ends: func(id, said, mark string) string {
				item := `{"id":"msg_` + id + `","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":` + quoted(said) + `}]}`
				return responseEvent(0, "response.completed", responseObject(id, "completed", item+","+holo(mark)))
			},
		},
		{
			author: author{family: messages}, event: mystery, part: odd, refusal: "hologram",
			item: text(hologram), rest: text(func(string) string { return stop(1) }), ends: text(func(string) string { return md("end_turn", 7) + me }),
		},
		{
			author: author{family: generate}, refusal: "hologram",
			event: func(mark string) string { return "data: {\"mystery\":{" + later(mark) + "}}\n\n" },
			item:  text(func(mark string) string { return candidate("one", `{"hologram":{`+later(mark)+`}}`, "") }), rest: text(nothing),
		},
		{
			author: author{family: generateArray}, refusal: "hologram",
			event: func(mark string) string { return "\n,\r\n{\"mystery\":{" + later(mark) + "}}" },
			item:  text(func(mark string) string { return "\n,\r\n" + element("one", `{"hologram":{`+later(mark)+`}}`, "") }), rest: text(nothing),
		},
		{
			author: author{family: interact}, refusal: "hologram",
			event: func(mark string) string { return step("interaction.mystery", later(mark)) },
			part: func(mark string) string {
				return step("step.delta", `"index":0,"delta":{"type":"mystery",`+later(mark)+`}`)
			},
			item: text(func(mark string) string {
				return step("step.stop", `"index":0`) + step("step.start", `"index":1,"step":{"type":"hologram",`+later(mark)+`}`)
			}),
			rest: text(func(string) string { return step("step.stop", `"index":1`) }),
			ends: func(id, _, _ string) string { return endInteraction(id) },
		},
		{
			author: author{family: converse}, refusal: "hologram",
			event: func(mark string) string { return frameOf("mystery", `{`+later(mark)+`}`) },
			part: func(mark string) string {
				return frameOf("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"mystery":{`+later(mark)+`}}}`)
			},
			item: text(func(mark string) string {
				return frameOf("contentBlockStop", `{"contentBlockIndex":0}`) + frameOf("contentBlockStart", `{"contentBlockIndex":1,"start":{"hologram":{`+later(mark)+`}}}`)
			}),
			rest: text(func(string) string { return frameOf("contentBlockStop", `{"contentBlockIndex":1}`) }),
			ends: text(func(string) string { return endConverse }),
		},
		{
			author: author{family: invoke}, refusal: "hologram",
			event: func(mark string) string { return inChunks(mystery(mark)) },
			part:  func(mark string) string { return inChunks(odd(mark)) },
			item:  text(func(mark string) string { return inChunks(hologram(mark)) }),
			rest:  text(func(string) string { return inChunks(stop(1)) }),
			ends:  text(func(string) string { return inChunks(md("end_turn", 7) + me) }),
		},
	} {
		n.author = authors[slices.IndexFunc(authors, func(a author) bool { return a.name == n.name })]
		n.request = n.fallback
		if n.name == interact.name {
			n.request = string(jsonwalk.SetMember(nil, []byte(n.request), "store", []byte("false")))
		}
		if n.ends == nil {
			n.ends = func(id, said, _ string) string { return n.end(id, said) }
		}
		all = append(all, n)
	}
	return all
}

var numbers = regexp.MustCompile(`"sequence_number":\d+`)

// numbered gives a stream's events the numbers that they have in a dialect that
// numbers them.
func numbered(stream string) []byte {
	n := -1
	return numbers.ReplaceAllFunc([]byte(stream), func([]byte) []byte {
		n++
		return fmt.Appendf(nil, `"sequence_number":%d`, n)
	})
}

// play cuts a stream, and goes on with another.
func (n newcomer) play(t *testing.T, first, second []byte) relaytest.Result {
	t.Helper()
	w := relaytest.World{Dialect: n.d, Config: relay.Config{Targets: []relay.Target{{Ability: prefilling}}}}
	res, err := w.Run([]byte(n.request), func(q relaytest.Request) relaytest.Reply {
		if q.N == 1 {
			return relaytest.Reply{Chunks: [][]byte{first}, End: interrupt.Ended{How: interrupt.Reset}}
		}
		return relaytest.Reply{Chunks: [][]byte{second}}
	})
	if err != nil || res.Broken != "" {
		t.Fatalf("%v %s\n%s", err, res.Broken, res.Body)
	}
	if !bytes.HasPrefix(res.Body, first) {
		t.Fatalf("what came before the cut did not pass\ngot  %s\nsent %s", res.Body, first)
	}
	return res
}

// whole fails unless the client has one message of all that was said, once.
func (n newcomer) whole(t *testing.T, res relaytest.Result) {
	t.Helper()
	s, faults, err := relaytest.Fold(n.d, mustParse(n.d, []byte(n.request)), res.Body)
	if err != nil || len(faults) > 0 || !s.Finished() || string(s.Prose()) != said1+said2 || res.End != relay.Clean {
		t.Fatalf("%v, %v, ended %v as %s, plans %v, text %q\n%s", err, faults, res.End, res.Outcome(), res.Plans(), s.Prose(), res.Body)
	}
}

// has fails unless each mark is there so many times.
func (n newcomer) has(t *testing.T, res relaytest.Result, times int, marks ...string) {
	t.Helper()
	for _, mark := range marks {
		if got := n.count(res.Body, mark); got != times {
			t.Errorf("%s is there %d times, want %d\n%s", mark, got, times, res.Body)
		}
	}
}

func (n newcomer) count(stream []byte, mark string) (times int) {
	for _, e := range n.units(stream) {
		times += bytes.Count(e.Data, []byte(`"later":"`+mark+`"`))
	}
	return times
}

func eachNewcomer(t *testing.T, story func(t *testing.T, n newcomer)) {
	for _, n := range newcomers() {
		t.Run(n.name, func(t *testing.T) { story(t, n) })
	}
}

func TestUnknownEventsSurviveASplice(t *testing.T) {
	eachNewcomer(t, func(t *testing.T, n newcomer) {
		first := n.begin(one) + n.event("e1") + n.text(one, said1) + n.event("e2")
		second := n.begin(two) + n.event("e3") + n.text(two, said2) + n.event("e4") + n.end(two, said2)
		res := n.play(t, numbered(first), numbered(second))
		n.whole(t, res)
		n.has(t, res, 1, "e1", "e2", "e3", "e4")
	})
}

func TestUnknownPartsSurviveASplice(t *testing.T) {
	eachNewcomer(t, func(t *testing.T, n newcomer) {
		if n.part == nil {
			t.Log("the dialect has no parts inside of a text")
			return
		}
		first := n.begin(one) + n.text(one, said1) + n.part("p1")
		second := n.begin(two) + n.text(two, said2) + n.part("p2") + n.end(two, said2)
		res := n.play(t, numbered(first), numbered(second))
		n.whole(t, res)
		n.has(t, res, 1, "p1", "p2")
	})
}

// An item that nobody knows passes where it comes whole, behind the splice, too. One that
// the client has when the turn breaks is what no continuation can be told of.
func TestUnknownItemsPassOrAreNamed(t *testing.T) {
	eachNewcomer(t, func(t *testing.T, n newcomer) {
		if n.item == nil {
			t.Log("the dialect has no items")
			return
		}
		before := n.begin(one) + n.text(one, said1)
		t.Run("uncut", func(t *testing.T) {
			all := numbered(before + n.item(one, said1, "i1") + n.rest(one, said1, "i1") + n.ends(one, said1, "i1"))
			if res := n.play(t, all, nil); res.End != relay.Clean || !bytes.Equal(res.Body, all) || len(res.Requests) != 1 {
				t.Errorf("ended %v as %s\n%s", res.End, res.Outcome(), res.Body)
			}
		})
		for name, cut := range map[string]string{"cut inside": "", "cut behind": n.rest(one, said1, "i1")} {
			t.Run(name, func(t *testing.T) {
				res := n.play(t, numbered(before+n.item(one, said1, "i1")+cut), nil)
				if want := "failed:unknown_block:" + n.refusal; res.End != relay.Abort || res.Outcome() != want || len(res.Requests) != 1 {
					t.Errorf("ended %v as %s, want %s, %d requests\n%s", res.End, res.Outcome(), want, len(res.Requests), res.Body)
				}
			})
		}
		t.Run("in a continuation", func(t *testing.T) {
			second := n.begin(two) + n.text(two, said2) + n.item(two, said2, "i2") + n.rest(two, said2, "i2") + n.ends(two, said2, "i2")
			res := n.play(t, numbered(before), numbered(second))
			n.whole(t, res)
			n.has(t, res, n.count([]byte(second), "i2"), "i2")
		})
	})
}

// Every object of every event has a member that nobody knows. Behind the splice each event
// has those it came with, as long as anything of it is left.
func TestUnknownFieldsSurviveASplice(t *testing.T) {
	eachNewcomer(t, func(t *testing.T, n newcomer) {
		first := n.enriched(t, numbered(n.begin(one)+n.text(one, said1)), "f1")
		second := n.enriched(t, numbered(n.begin(two)+n.text(two, said2)+n.end(two, said2)), "f2")
		res := n.play(t, first, second)
		n.whole(t, res)
		for _, e := range n.units(res.Body[len(first):]) {
			if !jsonwalk.Valid(e.Data) {
				continue // a marker
			}
			var v any
			if err := json.Unmarshal(e.Data, &v); err != nil {
				t.Fatal(err)
			}
			if !bytes.Contains(e.Data, []byte(`"later"`)) {
				t.Errorf("an event lost what it came with: %s", e.Data)
			}
			if bytes.Contains(e.Data, []byte(said2)) && bytes.Count(e.Data, []byte(`"later"`)) != objects(v) {
				t.Errorf("%d objects, %d of them as they came: %s", objects(v), bytes.Count(e.Data, []byte(`"later"`)), e.Data)
			}
		}
	})
}

// units are the events of a stream, or of what stands behind a part of one.
func (n newcomer) units(stream []byte) (out []sse.Event) {
	sc := dialect.NewScanner(n.d, 0)
	if n.name == generateArray.name && bytes.HasPrefix(bytes.TrimSpace(stream), []byte(",")) {
		stream = append([]byte("["), bytes.TrimSpace(stream)[1:]...)
	}
	sc.Push(stream)
	for e, ok := sc.Next(); ok; e, ok = sc.Next() {
		if e.Data != nil {
			out = append(out, sse.Event{Name: bytes.Clone(e.Name), Data: bytes.Clone(e.Data), Raw: bytes.Clone(e.Raw)})
		}
	}
	return out
}

// enriched is a stream with one more member in every object.
func (n newcomer) enriched(t *testing.T, stream []byte, mark string) (out []byte) {
	for _, e := range n.units(stream) {
		var v any
		if json.Unmarshal(e.Data, &v) != nil {
			out = append(out, e.Raw...)
			continue
		}
		data, err := json.Marshal(enrich(v, mark))
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case n.name == invoke.name:
			out = append(out, relaytest.Chunk(data)...)
		case n.name == converse.name:
			out = append(out, frameOf(string(e.Name), string(data))...)
		default:
			out = append(out, bytes.Replace(e.Raw, e.Data, data, 1)...)
		}
	}
	if n.name == generateArray.name && bytes.HasSuffix(bytes.TrimSpace(stream), []byte("]")) {
		out = append(out, "\n]\n"...)
	}
	return out
}

// enrich leaves Bedrock's unions alone: one of two members is no union any more, and
// AWS's own SDKs do not read it.
func enrich(v any, mark string) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			if _, union := v["contentBlockIndex"]; !union || k != "delta" {
				v[k] = enrich(v[k], mark)
			}
		}
		v["later"] = mark
	case []any:
		for i := range v {
			v[i] = enrich(v[i], mark)
		}
	}
	return v
}

func objects(v any) (n int) {
	switch v := v.(type) {
	case map[string]any:
		n = 1
		for k, m := range v {
			if _, union := v["contentBlockIndex"]; !union || k != "delta" {
				n += objects(m)
			}
		}
	case []any:
		for _, m := range v {
			n += objects(m)
		}
	}
	return n
}
