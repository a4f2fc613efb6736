package relay_test

import (
	"fmt"
	"testing"

	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/turn"
)

// A continuation that said its message in two parts, and did not end the first by itself,
// got a second message for the other one: the client's was ended in front of it, since
// every opening but that of a part unknown here ended what was open.
func TestAFurtherPartOfAContinuationStaysInItsMessage(t *testing.T) {
	a := authorNamed(t, responses.name)
	part := func(text string) string {
		return fmt.Sprintf(`{"type":"output_text","annotations":[],"text":%s}`, quoted(text))
	}
	where := func(n int) string {
		return fmt.Sprintf(`"item_id":"msg_two","output_index":0,"content_index":%d,`, n)
	}
	ended := func(n int, text string) string {
		return responseEvent(6, "response.output_text.done", where(n)+`"text":`+quoted(text)) +
			responseEvent(7, "response.content_part.done", where(n)+`"part":`+part(text))
	}
	const head, rest, other = citedHead + citedTwice, citedTwice + citedNew, "Another part."
	item := `{"id":"msg_two","type":"message","status":"completed","role":"assistant","content":[` + part(rest) + `,` + part(other) + `]}`
	second := `{"id":"msg_three","type":"message","status":"in_progress","role":"assistant","content":[]}`
	last := `{"id":"msg_three","type":"message","status":"completed","role":"assistant","content":[` + part("End.") + `]}`
	at := `"item_id":"msg_three","output_index":1,"content_index":0,`
	for name, end := range map[string]string{"with the end of the first": ended(0, rest), "without": ""} {
		t.Run(name, func(t *testing.T) {
			res := a.twoHops(t, turn.Asked, []string{a.begin(one), a.text(one, head)}, []string{
				a.begin("two"), a.text("two", rest), end,
				responseEvent(8, "response.content_part.added", where(1)+`"part":`+part("")),
				responseEvent(9, "response.output_text.delta", where(1)+`"delta":`+quoted(other)), ended(1, other),
				responseEvent(10, "response.output_item.done", `"output_index":0,"item":`+item),
				responseEvent(11, "response.output_item.added", `"output_index":1,"item":`+second),
				responseEvent(12, "response.content_part.added", at+`"part":`+part("")),
				responseEvent(13, "response.output_text.delta", at+`"delta":"End."`),
				responseEvent(14, "response.output_text.done", at+`"text":"End."`),
				responseEvent(15, "response.content_part.done", at+`"part":`+part("End.")),
				responseEvent(16, "response.output_item.done", `"output_index":1,"item":`+last),
				responseEvent(17, "response.completed", responseObject("two", "completed", item+","+last)),
			})
			if res.End != relay.Clean {
				t.Fatal(res.Outcome())
			}
			if _, err := a.read(res.Body); err != nil {
				t.Fatalf("%v\n%s", err, res.Body)
			}
			events := eventsOf(t, res.Body)
			output := list(outputOf(events[len(events)-1]))
			if len(output) != 2 {
				t.Fatalf("%d items\n%s", len(output), res.Body)
			}
			for i, want := range []struct {
				id    string
				texts []string
			}{{"msg_" + one, []string{head + citedNew, other}}, {"msg_three", []string{"End."}}} {
				item, _ := output[i].(map[string]any)
				content := list(item["content"])
				if item["id"] != want.id || len(content) != len(want.texts) {
					t.Errorf("item %d: %v, want %s with %d parts\n%s", i, item, want.id, len(want.texts), res.Body)
					continue
				}
				for j, text := range want.texts {
					if c, _ := content[j].(map[string]any); c["text"] != text {
						t.Errorf("part %d of item %d: %v, want %q", j, i, c["text"], text)
					}
				}
			}
		})
	}
}

func outputOf(end map[string]any) any {
	response, _ := end["response"].(map[string]any)
	return response["output"]
}
