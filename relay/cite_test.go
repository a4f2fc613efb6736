package relay_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

// A continuation that repeated its anchor cited the sources of the anchor again: the
// client had them twice, the second time with places counted from the start of the
// continuation, and so did every later citation of chat, Gemini and Interactions.

const (
	citedHead  = "Brasília’s café 漢字 lies by the lake, "
	citedTwice = "it is open every day of the week 😀"
	citedNew   = " and it closes at nine"
)

// citing is a dialect whose annotations name places in the answer.
type citing struct {
	author
	unit func(string) int
	// cite is an event with annotations of the text from one place to another.
	cite func(id, url string, from, to int) string
	// read returns "url from-to" for every annotation of the client's message.
	places func(t *testing.T, body []byte) []string
}

func authorNamed(t *testing.T, name string) author {
	t.Helper()
	for _, a := range authors {
		if a.name == name {
			return a
		}
	}
	t.Fatalf("no author for %s", name)
	return author{}
}

// eventsOf decodes the data of all events.
func eventsOf(t *testing.T, body []byte) (out []map[string]any) {
	t.Helper()
	for line := range strings.Lines(string(body)) {
		data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: ")
		if !ok || data == "[DONE]" {
			continue
		}
		var m map[string]any
		if err := json.Unmarshal([]byte(data), &m); err != nil {
			t.Fatalf("%v: %s", err, data)
		}
		out = append(out, m)
	}
	return out
}

// at walks into decoded JSON; nil where there is nothing.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func list(v any) []any { l, _ := v.([]any); return l }

func placed(url, from, to any) string {
	if from == nil {
		from = float64(0)
	}
	return fmt.Sprintf("%v %v-%v", url, from, to)
}

func citings(t *testing.T) []citing {
	return []citing{
		{
			author: authorNamed(t, responses.name), unit: utf8.RuneCountInString,
			cite: func(id, url string, from, to int) string {
				return responseEvent(5, "response.output_text.annotation.added", fmt.Sprintf(`"item_id":"msg_%s","output_index":0,"content_index":0,"annotation_index":0,"annotation":{"type":"url_citation","url":%q,"title":"t","start_index":%d,"end_index":%d}`, id, url, from, to))
			},
			places: func(t *testing.T, body []byte) (out []string) {
				events := eventsOf(t, body)
				for _, a := range list(at(events[len(events)-1], "response", "output", 0, "content", 0, "annotations")) {
					out = append(out, placed(at(a, "url"), at(a, "start_index"), at(a, "end_index")))
				}
				n := 0
				for _, e := range events {
					if e["type"] != "response.output_text.annotation.added" {
						continue
					}
					a := e["annotation"]
					if got := placed(at(a, "url"), at(a, "start_index"), at(a, "end_index")); n >= len(out) || out[n] != got || e["annotation_index"] != float64(n) {
						t.Errorf("annotation event %d is %s at %v, the sum has %q", n, got, e["annotation_index"], out)
					}
					n++
				}
				return out
			},
		},
		{
			author: authorNamed(t, chat.name), unit: utf8.RuneCountInString,
			cite: func(id, url string, from, to int) string {
				return chunk(id, fmt.Sprintf(`"annotations":[{"type":"url_citation","url_citation":{"url":%q,"title":"t","start_index":%d,"end_index":%d}}]`, url, from, to), "null")
			},
			places: func(t *testing.T, body []byte) (out []string) {
				for _, e := range eventsOf(t, body) {
					for _, a := range list(at(e, "choices", 0, "delta", "annotations")) {
						out = append(out, placed(at(a, "url_citation", "url"), at(a, "url_citation", "start_index"), at(a, "url_citation", "end_index")))
					}
				}
				return out
			},
		},
		{
			author: authorNamed(t, interact.name), unit: func(s string) int { return len(s) },
			cite: func(_, url string, from, to int) string {
				return step("step.delta", fmt.Sprintf(`"index":0,"delta":{"annotations":[{"type":"url_citation","url":%q,"start_index":%d,"end_index":%d}],"type":"text_annotation_delta"}`, url, from, to))
			},
			places: func(t *testing.T, body []byte) (out []string) {
				for _, e := range eventsOf(t, body) {
					for _, a := range list(at(e, "delta", "annotations")) {
						out = append(out, placed(at(a, "url"), at(a, "start_index"), at(a, "end_index")))
					}
				}
				return out
			},
		},
	}
}

func TestWhatIsCitedAgainIsCitedOnce(t *testing.T) {
	said := citedHead + citedTwice
	for _, c := range citings(t) {
		t.Run(c.name, func(t *testing.T) {
			// where is a part of text, counted from the start of text.
			where := func(text, part string) (from, to int) {
				i := strings.Index(text, part)
				return c.unit(text[:i]), c.unit(text[:i+len(part)])
			}
			cite := func(id, url, text, part string) string {
				from, to := where(text, part)
				return c.cite(id, url, from, to)
			}
			whole := said + citedNew
			want := func(url, part string) string {
				from, to := where(whole, part)
				return fmt.Sprintf("%s %d-%d", url, from, to)
			}
			for name, repeats := range map[string]string{"nothing": "", "the anchor": citedTwice, "the whole": said} {
				t.Run("repeating "+name, func(t *testing.T) {
					again := repeats + citedNew
					first := []string{c.begin(one), c.text(one, said), cite(one, "https://a.test/", said, "café"), strings.Replace(cite(one, "https://b.test/", said, "every day"), `_index":0,"annotation":`, `_index":1,"annotation":`, 1)}
					second := []string{c.begin("two")}
					if repeats != "" {
						// One citation comes before all of the anchor did, one behind it, and
						// one of the anchor was not made before.
						half := len("it is open every day of")
						half = strings.Index(repeats, citedTwice) + half
						second = append(second, c.text("two", repeats[:half]), cite("two", "https://b.test/", again, "every day"), c.text("two", repeats[half:]), cite("two", "https://c.test/", again, "week"))
					}
					second = append(second, c.text("two", citedNew), cite("two", "https://b.test/", again, "nine"), c.end("two", again))
					wants := []string{want("https://a.test/", "café"), want("https://b.test/", "every day")}
					if repeats != "" {
						wants = append(wants, want("https://c.test/", "week"))
					}
					wants = append(wants, want("https://b.test/", "nine"))
					manner := turn.Asked
					if repeats == "" {
						manner = turn.Prefill
					}
					res := c.twoHops(t, manner, first, second)
					if got := c.places(t, res.Body); strings.Join(got, ", ") != strings.Join(wants, ", ") {
						t.Errorf("cited %q\nwant  %q\n%s", got, wants, res.Body)
					}
				})
			}
		})
	}
}

// twoHops cuts a stream by a reset and lets another go on.
func (a author) twoHops(t *testing.T, manner turn.Manner, first, second []string) relaytest.Result {
	t.Helper()
	w := relaytest.World{Dialect: a.d, Config: relay.Config{Anchor: len(citedTwice), Targets: []relay.Target{{Ability: dialect.Ability{Manners: []turn.Manner{manner}}}}}}
	res, err := w.Run([]byte(a.request), func(q relaytest.Request) relaytest.Reply {
		if q.N == 1 {
			return rst(first...)
		}
		return fin(second...)
	})
	if err != nil || res.Broken != "" || res.End != relay.Clean || len(res.Requests) != 2 {
		t.Fatalf("%v %s, ended %v as %s after %d requests, plans %v\n%s", err, res.Broken, res.End, res.Outcome(), len(res.Requests), res.Plans(), res.Body)
	}
	return res
}

// A file is cited at a point, which is where its mark goes; two marks at one point are
// the provider's to make.
func TestACitedFileIsMarkedWhereItWas(t *testing.T) {
	a := authorNamed(t, responses.name)
	mark := func(id, file string, at int) string {
		return responseEvent(5, "response.output_text.annotation.added", fmt.Sprintf(`"item_id":"msg_%s","output_index":0,"content_index":0,"annotation_index":0,"annotation":{"type":"file_citation","file_id":%q,"filename":"f","index":%d}`, id, file, at))
	}
	said, tail, behind := citedHead+citedTwice, utf8.RuneCountInString(citedTwice), utf8.RuneCountInString(citedTwice+citedNew)
	head := utf8.RuneCountInString(citedHead)
	res := a.twoHops(t, turn.Asked,
		[]string{a.begin(one), a.text(one, said), mark(one, "A", head+tail)},
		[]string{a.begin("two"), a.text("two", citedTwice), mark("two", "A", tail), a.text("two", citedNew), mark("two", "B", behind), mark("two", "B", behind), a.end("two", citedTwice+citedNew)})
	events := eventsOf(t, res.Body)
	var got []string
	for _, n := range list(at(events[len(events)-1], "response", "output", 0, "content", 0, "annotations")) {
		got = append(got, fmt.Sprint(at(n, "file_id"), " ", at(n, "index")))
	}
	want := fmt.Sprintf("A %d, B %d, B %d", head+tail, head+behind, head+behind)
	if strings.Join(got, ", ") != want {
		t.Errorf("marks %v, want %s", got, want)
	}
}

// Gemini grounds an answer at its end, by bytes of all of it.
func TestGroundingBehindASeamNamesPlacesOfTheWholeAnswer(t *testing.T) {
	a := authorNamed(t, generate.name)
	said, again := citedHead+citedTwice, citedTwice+citedNew
	segment := func(text, part string) string {
		i := strings.Index(text, part)
		start := fmt.Sprintf(`"startIndex":%d,`, i)
		if i == 0 {
			start = ""
		}
		return fmt.Sprintf(`{"segment":{%s"endIndex":%d,"text":%s},"groundingChunkIndices":[0]}`, start, i+len(part), quoted(part))
	}
	meta := func(text string, parts ...string) string {
		var ss, cs []string
		for _, p := range parts {
			ss = append(ss, segment(text, p))
			cs = append(cs, fmt.Sprintf(`{"startIndex":%d,"endIndex":%d,"uri":"https://a.test/"}`, strings.Index(text, p), strings.Index(text, p)+len(p)))
		}
		return `,"groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://a.test/"}}],"groundingSupports":[` + strings.Join(ss, ",") + `]},"citationMetadata":{"citations":[` + strings.Join(cs, ",") + `]}`
	}
	res := a.twoHops(t, turn.Asked, []string{a.begin(one), a.text(one, said)},
		[]string{a.begin("two"), a.text("two", again), candidate("two", `{"text":""}`, `,"finishReason":"STOP"`+meta(again, "it is", "week", "nine"))})
	events := eventsOf(t, res.Body)
	last := at(events[len(events)-1], "candidates", 0)
	whole := said + citedNew
	for i, part := range []string{"it is", "week", "nine"} {
		for name, place := range map[string]any{"support": at(last, "groundingMetadata", "groundingSupports", i, "segment"), "citation": at(last, "citationMetadata", "citations", i)} {
			from, _ := at(place, "startIndex").(float64)
			to, _ := at(place, "endIndex").(float64)
			if from < 0 || to <= from || int(to) > len(whole) || whole[int(from):int(to)] != part {
				t.Errorf("%s of %q is at %v-%v: %v", name, part, from, to, place)
			}
		}
	}
}

// A citation of Messages and Converse names a place in the source, not in the answer,
// and stands in front of the text that it is for.
func TestACitationOfABlockThatGoesOnIsNotMadeTwice(t *testing.T) {
	source := func(text string) string {
		return `{"type":"char_location","cited_text":` + quoted(text) + `,"document_index":0,"document_title":"d","start_char_index":0,"end_char_index":9}`
	}
	cite := func(i int, text string) string {
		return delta(i, `"type":"citations_delta","citation":`+source(text))
	}
	w := messagesWire
	c := only(turn.Asked)
	c.Anchor = len(citedTwice)
	said := citedHead + citedTwice
	for name, repeats := range map[string]string{"the anchor": citedTwice, "the whole": said} {
		t.Run(name, func(t *testing.T) {
			p := w.playWith(t, c, rst(ms("one")+bText(0)+cite(0, "A")+tx(0, said)),
				fin(ms("two")+bText(0)+cite(0, "A")+tx(0, repeats)+tx(0, citedNew)+cite(0, "B")+stop(0)+bText(1)+cite(1, "A")+tx(1, " More.")+stop(1)+md("end_turn", 7)+me))
			p.hits(2).message(said+citedNew+" More.", "end_turn")
			p.has(1, `"index":0,"delta":{"type":"citations_delta","citation":`+source("A")).has(1, `"index":0,"delta":{"type":"citations_delta","citation":`+source("B")).
				has(1, `"index":1,"delta":{"type":"citations_delta","citation":`+source("A"))
		})
	}
	t.Run("the whole again, in its blocks", func(t *testing.T) {
		// The first block of the repetition ends inside of what is said again: its end
		// and its citation are not those of the block that goes on.
		p := w.playWith(t, c, rst(ms("one")+bText(0)+cite(0, "A")+tx(0, citedHead)+stop(0)+bText(1)+cite(1, "B")+tx(1, citedTwice)),
			fin(ms("two")+bText(0)+cite(0, "A")+tx(0, citedHead)+stop(0)+bText(1)+cite(1, "B")+tx(1, citedTwice)+tx(1, citedNew)+stop(1)+md("end_turn", 7)+me))
		p.hits(2).message(said+citedNew, "end_turn")
		p.has(1, source("A")).has(1, source("B")).has(2, `"type":"content_block_start"`).has(2, `"type":"content_block_stop"`)
	})
}
