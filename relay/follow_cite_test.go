package relay_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
)

// A follower's client had the text of a turn without what stands beside it (Messages,
// Responses), or with each of its citations again whenever the text grew (Converse). It
// has each of them once, as the other client has, however the log comes to it.
func TestFollowersHaveTheCitations(t *testing.T) {
	counted := func(t *testing.T, body []byte) (out []string) {
		for _, url := range []string{"https://a.test/", "https://b.test/"} {
			out = append(out, fmt.Sprint(url, " ", bytes.Count(body, []byte(url)), " times"))
		}
		return out
	}
	for _, c := range []citing{
		citings(t)[0], // Responses
		{
			author: authorNamed(t, messages.name), places: counted,
			cite: func(_, url string, _, _ int) string {
				return event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"`+url+`"}}}`)
			},
		},
		{
			author: authorNamed(t, converse.name), places: counted,
			cite: func(_, url string, _, _ int) string {
				return frameOf("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"citation":{"location":{"web":{"url":"`+url+`"}}}}}`)
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			second := strings.Replace(c.cite(one, "https://b.test/", 0, 3), `_index":0,"annotation":`, `_index":1,"annotation":`, 1)
			end := strings.ReplaceAll(c.end(one, "Said and more"), `"annotations":[]`, `"annotations":[`+summed("https://a.test/", 4)+","+summed("https://b.test/", 3)+"]")
			w := relaytest.World{Dialect: c.d, Config: relay.Config{Flush: 1}}
			first, err := w.Run([]byte(c.request), func(relaytest.Request) relaytest.Reply {
				return fin(c.begin(one), c.text(one, "Said "), c.cite(one, "https://a.test/", 0, 4), c.text(one, "and more"), second, end)
			})
			if err != nil || first.End != relay.Clean {
				t.Fatalf("%v, %v", first.End, err)
			}
			want := strings.Join(c.places(t, first.Body), ", ")
			if !strings.Contains(want, "https://b.test/") {
				t.Fatalf("the other client has %q", want)
			}
			for piece := 1; piece <= len(first.Log); piece += 1 + piece/3 {
				res, err := w.Follow([]byte(c.request), first.Log, piece, nil)
				if err != nil || res.Broken != "" || res.End != relay.Clean {
					t.Fatalf("pieces of %d: end %v, %v, law %q", piece, res.End, err, res.Broken)
				}
				if got := strings.Join(c.places(t, res.Body), ", "); got != want {
					t.Fatalf("pieces of %d: it has %q, the other client %q\n%s", piece, got, want, res.Body)
				}
			}
		})
	}
}

// summed is an annotation as the end of a response holds it.
func summed(url string, to int) string {
	return fmt.Sprintf(`{"type":"url_citation","url":%q,"title":"t","start_index":0,"end_index":%d}`, url, to)
}
