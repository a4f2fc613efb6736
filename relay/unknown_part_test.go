package relay_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/relay"
)

// A part of a Responses message is more than an event inside of a text: the item that ends
// it, and the response that ends the turn, have to hold it at the index that it was
// announced under. It was lost from both, and announced under the text's own index.
func TestUnknownPartsOfAResponsesMessage(t *testing.T) {
	n := newcomers()[slices.IndexFunc(newcomers(), func(n newcomer) bool { return n.name == responses.name })]
	part := func(mark string) string { return `{"type":"mystery","later":"` + mark + `"}` }
	at := func(i int) string { return fmt.Sprintf(`"item_id":"msg_two","output_index":0,"content_index":%d,`, i) }
	added := func(i int, mark string) string {
		return responseEvent(0, "response.content_part.added", at(i)+`"part":`+part(mark))
	}
	done := func(i int, mark string) string {
		return responseEvent(0, "response.content_part.done", at(i)+`"part":`+part(mark))
	}
	text := func(said string) string { return `{"type":"output_text","annotations":[],"text":` + quoted(said) + `}` }
	end := func(id string, parts ...string) string {
		item := `{"id":"msg_` + id + `","type":"message","status":"completed","role":"assistant","content":[` + strings.Join(parts, ",") + `]}`
		return responseEvent(0, "response.output_item.done", `"output_index":0,"item":`+item) + responseEvent(0, "response.completed", responseObject(id, "completed", item))
	}
	before := n.begin(one) + n.text(one, said1)
	told := endResponse(two, said2)
	told = told[:strings.Index(told, "event: response.output_item.done")]
	item, opening, _ := strings.Cut(n.begin(two), "event: response.content_part.added")
	behind := func(stream string) string {
		return strings.ReplaceAll(stream, `"content_index":0`, `"content_index":1`)
	}

	t.Run("uncut", func(t *testing.T) {
		all := numbered(before + added(1, "p1") + done(1, "p1") + end(one, text(said1), part("p1")))
		if res := n.play(t, all, nil); res.End != relay.Clean || !bytes.Equal(res.Body, all) || len(res.Requests) != 1 {
			t.Errorf("ended %v as %s\n%s", res.End, res.Outcome(), res.Body)
		}
	})
	for name, said := range map[string]string{
		"cut inside":       before + added(1, "p1"),
		"cut behind":       before + added(1, "p1") + done(1, "p1"),
		"cut in the text":  n.begin(one) + added(1, "p1") + done(1, "p1") + n.text(one, said1),
		"cut behind item":  before + added(1, "p1") + done(1, "p1") + strings.Split(end(one, text(said1), part("p1")), "event: response.completed")[0],
		"told by the item": before + strings.Split(end(one, text(said1), part("p1")), "event: response.completed")[0],
	} {
		t.Run(name, func(t *testing.T) {
			res := n.play(t, numbered(said), nil)
			if want := "failed:unknown_block:mystery"; res.End != relay.Abort || res.Outcome() != want || len(res.Requests) != 1 {
				t.Errorf("ended %v as %s, want %s, %d requests\n%s", res.End, res.Outcome(), want, len(res.Requests), res.Body)
			}
		})
	}
	t.Run("between two texts", func(t *testing.T) {
		more := responseEvent(0, "response.content_part.added", at(2)+`"part":`+text("")) + responseEvent(0, "response.output_text.delta", at(2)+`"delta":`+quoted(said2[5:]))
		second := n.begin(two) + n.text(two, said2[:5]) + added(1, "p2") + done(1, "p2") + more + end(two, text(said2[:5]), part("p2"), text(said2[5:]))
		res := n.play(t, numbered(before), numbered(second))
		n.whole(t, res)
		n.has(t, res, 4, "p2")
		var items [][]byte
		for _, e := range n.units(res.Body) {
			if item := jsonwalk.Get(e.Data, "item"); bytes.Contains(e.Data, []byte(`"response.output_item.done"`)) {
				items = append(items, item)
			}
			if output := jsonwalk.Get(e.Data, "response", "output"); bytes.Contains(e.Data, []byte(`"response.completed"`)) && string(output) != "["+string(bytes.Join(items, []byte(",")))+"]" {
				t.Errorf("the items ended as %s\nand are %s", items, output)
			}
		}
	})
	for name, c := range map[string]struct {
		second string
		events int
	}{
		"in a continuation": {n.begin(two) + n.text(two, said2) + added(1, "p2") + done(1, "p2") + told + end(two, text(said2), part("p2")), 2},
		"behind the text":   {n.begin(two) + n.text(two, said2) + told + added(1, "p2") + done(1, "p2") + end(two, text(said2), part("p2")), 2},
		"amid the text":     {n.begin(two) + n.text(two, said2[:5]) + added(1, "p2") + done(1, "p2") + n.text(two, said2[5:]) + told + end(two, text(said2), part("p2")), 2},
		"in front of it":    {item + added(0, "p2") + done(0, "p2") + behind("event: response.content_part.added"+opening+n.text(two, said2)+told) + end(two, part("p2"), text(said2)), 2},
		"without an end":    {n.begin(two) + n.text(two, said2) + added(1, "p2") + told + end(two, text(said2), part("p2")), 1},
		"in the item alone": {n.begin(two) + n.text(two, said2) + told + end(two, text(said2), part("p2")), 0},
	} {
		t.Run(name, func(t *testing.T) {
			res := n.play(t, numbered(before), numbered(c.second))
			n.whole(t, res)
			n.has(t, res, c.events+2, "p2")
			want := "[" + text(said1+said2) + "," + part("p2") + "]"
			for _, e := range n.units(res.Body) {
				content := jsonwalk.Get(e.Data, "item", "content")
				switch typ, _ := jsonwalk.String(jsonwalk.Get(e.Data, "type")); string(typ) {
				case "response.content_part.added", "response.content_part.done":
					if at := string(jsonwalk.Get(e.Data, "content_index")); bytes.Contains(e.Data, []byte(`"p2"`)) != (at == "1") {
						t.Errorf("content_index %s: %s", at, e.Data)
					}
					continue
				case "response.completed":
					content = jsonwalk.Get(e.Data, "response", "output", "0", "content")
				case "response.output_item.done":
				default:
					continue
				}
				if string(content) != want {
					t.Errorf("got  %s\nwant %s\nin %s", content, want, e.Data)
				}
			}
		})
	}
}
