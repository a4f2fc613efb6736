package dialecttest

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

// Noted stands in [HistoryCase].Later where a note about the turn's calls is to go.
const Noted = "§"

// HistoryCase is a request and a later one of, perhaps, the same conversation.
type HistoryCase struct {
	Name  string
	First string
	// Later carries results of the turn that First asked for, and Noted once if a
	// note has a place there. Call is the call it answers.
	Later, Call string
	// Note is how the words w are spelled there.
	Note string
	// Foreign: it is another conversation's.
	Foreign bool
}

// Histories checks what a dialect reads out of later requests, and that a note goes
// where it should and changes nothing else.
func Histories(t *testing.T, d dialect.Historian, cases []HistoryCase) {
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			now := d.History([]byte(c.First)).Now
			body := []byte(strings.ReplaceAll(c.Later, Noted, ""))
			if !d.Answers(body) {
				t.Error("it is not looked at: Answers says no")
			}
			rounds := d.History(body).Rounds
			at := slices.IndexFunc(rounds, func(r dialect.Round) bool { return r.Before == now && slices.Contains(r.Calls, c.Call) })
			if c.Foreign != (at < 0) {
				t.Fatalf("found round %d of %+v", at, rounds)
			}
			if c.Foreign {
				return
			}
			place := rounds[at].Note
			if marked := strings.Contains(c.Later, Noted); marked != (place.At > 0) {
				t.Fatalf("the note's place is %+v", place)
			} else if !marked {
				return
			}
			got := string(jsonwalk.Apply(nil, body, []jsonwalk.Patch{place.Insert("w")}))
			if want := strings.Replace(c.Later, Noted, c.Note, 1); got != want || !json.Valid([]byte(got)) {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// FuzzNotes: notes in whatever requests leave sound requests, the same history, and,
// taken out again, the bytes that were there.
func FuzzNotes(f *testing.F, d dialect.Historian, seeds ...[]byte) {
	for _, s := range seeds {
		f.Add(s)
	}
	const words = "a \"note\"\\ \u2028\n"
	f.Fuzz(func(t *testing.T, body []byte) {
		if !jsonwalk.Valid(body) {
			return
		}
		body = slices.Clip(body)
		var notes []jsonwalk.Patch
		before := d.History(body)
		for _, r := range before.Rounds {
			if len(r.Calls) == 0 {
				t.Fatal("a round without results")
			}
			if r.Note.At > 0 {
				notes = append(notes, r.Note.Insert(words))
			}
		}
		noted := jsonwalk.ApplySorted(body, slices.Clone(notes))
		if !jsonwalk.Valid(noted) {
			t.Fatalf("unsound:\n%s\n%s", body, noted)
		}
		if after := d.History(noted); len(after.Rounds) != len(before.Rounds) {
			t.Fatalf("%d rounds became %d", len(before.Rounds), len(after.Rounds))
		}
		var out []jsonwalk.Patch
		shift := 0
		for _, n := range notes {
			out = append(out, jsonwalk.Patch{At: n.At + shift, End: n.At + shift + len(n.With)})
			shift += len(n.With)
		}
		if back := jsonwalk.Apply(nil, noted, out); string(back) != string(body) {
			t.Fatalf("the body did not come back:\n%s\n%s", body, back)
		}
	})
}

// Seeds are the requests of cases.
func Seeds(cases []HistoryCase) (bodies [][]byte) {
	for _, c := range cases {
		bodies = append(bodies, []byte(c.First), []byte(strings.ReplaceAll(c.Later, Noted, "")))
	}
	return bodies
}
