package relay_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

// A follower's client had the text of a turn without what stands beside it (all dialects
// but Converse), or with each of its citations again whenever the text grew (Converse). It
// has each of them once, as the other client has, however the log comes to it.
func TestFollowersHaveTheCitations(t *testing.T) {
	counted := func(t *testing.T, body []byte) (out []string) {
		for _, url := range []string{"https://a.test/", "https://b.test/"} {
			out = append(out, fmt.Sprint(url, " ", bytes.Count(body, []byte(url)), " times"))
		}
		return out
	}
	grounds := func(_, url string, _, _ int) string {
		return `,"groundingMetadata":{"groundingChunks":[{"web":{"uri":"` + url + `"}}]}`
	}
	for _, c := range append(citings(t), []citing{ // Responses, chat, Interactions
		{
			author: authorNamed(t, generate.name), places: counted,
			cite: func(id, url string, from, to int) string {
				return candidate(id, `{"text":""}`, grounds(id, url, from, to))
			},
		},
		{
			author: authorNamed(t, generateArray.name), places: counted,
			cite: func(id, url string, from, to int) string {
				return "\n,\r\n" + element(id, `{"text":""}`, grounds(id, url, from, to))
			},
		},
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
	}...) {
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

// aside is a turn with something beside its text, as its provider streams it.
type aside struct {
	name, dialect string
	parts         func(a author) []string
	has           []string // what both clients get, once
}

func asides() []aside {
	inChat := func(members string) func(author) []string {
		return func(a author) []string {
			return []string{a.begin(one), a.text(one, "Said "), chunk(one, members, "null"), a.text(one, "and more"), a.end(one, "")}
		}
	}
	top := func(members string) string {
		return strings.Replace(chunk(one, `"content":"x"`, "null"), `{"id"`, "{"+members+`,"id"`, 1)
	}
	inStep := func(delta string) func(author) []string {
		return func(a author) []string {
			return []string{a.begin(one), a.text(one, "Said "), step("step.delta", `"index":0,"delta":`+delta), a.text(one, "and more"), a.end(one, "")}
		}
	}
	return []aside{
		{"sources of the whole answer", chat.name, func(a author) []string {
			sources := top(`"citations":["https://a.test/"],"search_results":[{"title":"b"}]`)
			return []string{a.begin(one), sources, sources, a.end(one, "")}
		}, []string{`"citations":["https://a.test/"]`, `"search_results":[{"title":"b"}]`}},
		{"sound", chat.name, inChat(`"audio":{"id":"a1","data":"UklGRg=="}`), []string{`"audio":{"id":"a1","data":"UklGRg=="}`}},
		{"a sealed thought", chat.name, inChat(`"reasoning":"Hm","reasoning_details":[{"type":"reasoning.text","text":"Hm","signature":"sig"}]`), []string{`"signature":"sig"`, `"reasoning_details":[{"type":"reasoning.text","text":"Hm"}]`}},
		{"a part that is no text", chat.name, inChat(`"content":[{"type":"reference","reference_ids":[1]}]`), []string{`{"type":"reference","reference_ids":[1]}`}},
		{"a picture", chat.name, inChat(`"images":[{"type":"image_url","image_url":{"url":"data:,x"}}]`), []string{`"images":[{"type":"image_url","image_url":{"url":"data:,x"}}]`}},
		{"what a host ran before it spoke", chat.name, func(a author) []string {
			return []string{a.begin(one), chunk(one, `"executed_tools":[{"type":"search"}]`, "null"), a.text(one, "Said"), a.end(one, "")}
		}, []string{`"executed_tools":[{"type":"search"}]`}},
		{"probabilities", chat.name, func(a author) []string {
			return []string{a.begin(one), strings.Replace(a.text(one, "Said"), `"finish_reason"`, `"logprobs":{"content":[{"token":"Said"}]},"finish_reason"`, 1), a.end(one, "")}
		}, []string{`"logprobs":{"content":[{"token":"Said"}]}`}},
		{"probabilities of a completion", legacy.name, func(a author) []string {
			return []string{a.begin(one), strings.Replace(a.text(one, "Said"), `"logprobs":null`, `"logprobs":{"tokens":["Said"]}`, 1), a.end(one, "")}
		}, []string{`"logprobs":{"tokens":["Said"]}`}},
		{"sources behind a call", chat.name, func(a author) []string {
			return []string{a.begin(one), a.text(one, "Said"), chunk(one, `"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":"{\"p\":1}"}}]`, "null"),
				fr(one, "tool_calls"), chunk(one, `"annotations":[{"type":"late"}]`, "null"), done}
		}, []string{`"annotations":[{"type":"late"}]`, `"id":"c1"`}},
		{"remarks at the end", generate.name, func(a author) []string {
			return []string{a.begin(one), a.text(one, "Said"), candidate(one, `{"text":""}`,
				`,"finishReason":"STOP","finishMessage":"well","safetyRatings":[{"category":"C"}],"avgLogprobs":-0.5,"citationMetadata":{"citations":[{"uri":"https://a.test/"}]},"urlContextMetadata":{"urlMetadata":[{"retrievedUrl":"https://b.test/"}]}`)}
		}, []string{`"finishMessage":"well"`, `"safetyRatings":[{"category":"C"}]`, `"avgLogprobs":-0.5`, "https://a.test/", "https://b.test/"}},
		{"grounding behind the end", generate.name, func(a author) []string {
			return []string{a.begin(one), a.text(one, "Said"), candidate(one, `{"functionCall":{"name":"f","args":{"p":1}}}`, `,"finishReason":"STOP"`), candidate(one, `{"text":""}`, `,"groundingMetadata":{"webSearchQueries":["q"]}`)}
		}, []string{`"webSearchQueries":["q"]`, `"functionCall"`}},
		{"why a prompt was blocked", generate.name, func(author) []string {
			return []string{`data: {"promptFeedback":{"blockReason":"SAFETY","safetyRatings":[{"category":"C"}]},"usageMetadata":{"promptTokenCount":3},"modelVersion":"m","responseId":"one"}` + "\n\n"}
		}, []string{`"promptFeedback":{"blockReason":"SAFETY","safetyRatings":[{"category":"C"}]}`}},
		{"a picture", generate.name, func(a author) []string {
			return []string{a.begin(one), a.text(one, "Said"), candidate(one, `{"inlineData":{"mimeType":"image/png","data":"iVBORw0="}}`, ""), a.end(one, "")}
		}, []string{`{"inlineData":{"mimeType":"image/png","data":"iVBORw0="}}`}},
		{"a picture", interact.name, inStep(`{"type":"image","mime_type":"image/png","data":"iVBORw0="}`), []string{`{"type":"image","mime_type":"image/png","data":"iVBORw0="}`}},
	}
}

// What is told again is all that was told: also what no text holds.
func TestFollowersHaveWhatStandsBesideTheText(t *testing.T) {
	for _, c := range asides() {
		a := authorNamed(t, c.dialect)
		t.Run(a.name+": "+c.name, func(t *testing.T) {
			w := relaytest.World{Dialect: a.d, Config: relay.Config{Flush: 1}}
			first, err := w.Run([]byte(a.request), func(relaytest.Request) relaytest.Reply { return fin(c.parts(a)...) })
			if err != nil || first.End != relay.Clean {
				t.Fatalf("%v, %v", first.End, err)
			}
			for piece := 1; piece <= len(first.Log); piece += 1 + piece/3 {
				res, err := w.Follow([]byte(a.request), first.Log, piece, nil)
				if err != nil || res.Broken != "" || res.End != relay.Clean {
					t.Fatalf("pieces of %d: end %v, %v, law %q", piece, res.End, err, res.Broken)
				}
				if blank := []byte(`"candidates"`); bytes.Contains(res.Body, blank) && !bytes.Contains(first.Body, blank) {
					t.Fatalf("pieces of %d: an answer where there was none\n%s", piece, res.Body)
				}
				for _, has := range c.has {
					if n := bytes.Count(res.Body, []byte(has)); n != 1 {
						t.Fatalf("pieces of %d: %s %d times in\n%s", piece, has, n, res.Body)
					}
				}
			}
			res, err := w.Resume([]byte(a.request), first.Log, nil)
			if err != nil || res.End != relay.Clean {
				t.Fatalf("replayed: %v, %v", res.End, err)
			}
			for _, has := range c.has {
				if n := bytes.Count(res.Body, []byte(has)); n != 1 {
					t.Errorf("replayed: %s %d times in\n%s", has, n, res.Body)
				}
			}
		})
	}
}

// What is too much to be kept is not left out of the answer in silence: a follower is
// refused. Where nobody carries the turn on, which has not ended, and its client has
// nothing, it is asked for again.
func TestAPoorerAnswerIsNotTold(t *testing.T) {
	a := authorNamed(t, chat.name)
	w := relaytest.World{Dialect: a.d, Config: relay.Config{Flush: 1}}
	clip := chunk(one, `"audio":{"id":"a1","data":"`+strings.Repeat("A", dialect.KeepLimit/2)+`"}`, "null")
	whole := fin(a.begin(one), clip, clip, clip, a.end(one, ""))
	first, err := w.Run([]byte(a.request), func(relaytest.Request) relaytest.Reply { return whole })
	if err != nil || first.End != relay.Clean || bytes.Count(first.Body, []byte(`"data":"AAA`)) != 3 {
		t.Fatalf("%v, %v", first.End, err)
	}
	if len(first.Log) > dialect.KeepLimit+1<<10 {
		t.Errorf("%d bytes were kept", len(first.Log))
	}
	if _, err := w.Follow([]byte(a.request), first.Log, len(first.Log), nil); !errors.Is(err, relay.ErrUntold) {
		t.Fatalf("followed: %v", err)
	}
	res, err := w.Resume([]byte(a.request), first.Log, nil)
	if err != nil || res.Broken != "" || res.Outcome() != "failed:untold" || res.Head == nil || res.Head.Status != 502 || !bytes.Contains(res.Body, []byte("untold")) {
		t.Errorf("replayed: %v, %s, law %q: %.300s", err, res.Outcome(), res.Broken, res.Body)
	}
	cut, err := w.Kill([]byte(a.request), func(relaytest.Request) relaytest.Reply {
		r := fin(a.begin(one), clip, clip, clip, a.text(one, "Said"), a.text(one, " and "), a.text(one, "more"))
		r.Hang = true
		return r
	})
	if left, bad := turn.Replay(cut.Log); err != nil || bad != nil || left.Blocks[0].Stage&turn.Untold == 0 {
		t.Fatalf("%v, %v", err, bad)
	}
	for name, take := range map[string]func(relaytest.Provider) (relaytest.Result, error){
		"by a follower": func(p relaytest.Provider) (relaytest.Result, error) {
			return w.Follow([]byte(a.request), cut.Log, len(cut.Log), p)
		},
		"by a newcomer": func(p relaytest.Provider) (relaytest.Result, error) {
			return w.Resume([]byte(a.request), cut.Log, p)
		},
	} {
		asked := 0
		res, err := take(func(q relaytest.Request) relaytest.Reply {
			if asked++; q.Derived {
				t.Errorf("asked to go on with %.300s", q.Body)
			}
			return whole
		})
		if err != nil || res.End != relay.Clean || res.Broken != "" || asked != 1 || bytes.Count(res.Body, []byte(`"data":"AAA`)) != 3 {
			t.Errorf("taken over %s: end %v, %v, %s, law %q, asked %d times: %.300s", name, res.End, err, res.Outcome(), res.Broken, asked, res.Body)
		}
	}
}
