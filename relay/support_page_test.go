package relay_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/interrupt"
)

// plans are the rows that can stand in a table, apart from refusals.
var plans = map[string]string{
	"finish":                  "the end that is missing is rendered here",
	"resume":                  "attached to again at the provider, which holds it: byte-equal",
	"r2_synthesize_tool_use":  "ended as tool use with the calls that are complete",
	"r3_truncate_before_tool": "continued from the text; calls that were cut are dropped",
	"r1_continue_text":        "continued from the text",
	"r4_whole_restart":        "asked again: the client had nothing that stays",
}

var planOrder = []string{"finish", "resume", "r2_synthesize_tool_use", "r3_truncate_before_tool", "r1_continue_text", "r4_whole_restart"}

// causes are those that cut a stream, in the order of their letters.
var causes = []struct {
	letter string
	kind   interrupt.Kind
	says   string
}{
	{"R", interrupt.ConnectionReset, "the connection broke"},
	{"E", interrupt.TruncatedEOF, "a polite but early end"},
	{"S", interrupt.IdleStall, "silence, or pings alone"},
	{"G", interrupt.GoAway, "GOAWAY"},
	{"P", interrupt.Provider5xxMidStream, "an error event"},
	{"M", interrupt.Malformed, "an event that is none"},
	{"F", interrupt.FirstTokenTimeout, "nothing visible in time"},
	{"N", interrupt.EmptyAnswer, "a 200 without an event"},
}

// every is how many causes at the front of the list can meet any turn: a cell that has
// them all says so.
const every = 6

func (c claim) compare(d claim) int {
	return cmp.Or(cmp.Compare(c.family, d.family), cmp.Compare(c.how, d.how), cmp.Compare(c.turn, d.turn), cmp.Compare(c.cause, d.cause))
}

// renderSupport is the page.
func renderSupport(claims map[claim]bool) []byte {
	var b bytes.Buffer
	b.WriteString("# Support\n\nWritten by `make support` from what the batteries of `relay` see: recorded and composed turns of every dialect, cut everywhere, by everything, on hosts that go on\n" +
		"with a trailing assistant turn and on hosts that must be asked. A row is a plan; a cell says by which causes turns of that kind were cut when it carried them, and the official SDK\n" +
		"read the very message that it would have read uncut (for `r2`, its beginning). An empty cell was not seen. `make test` fails if the page says more than was seen.\n" +
		"A turn that is cut behind its finish is completed here, by no plan at all.\n\n" +
		"| | cause |\n|---|---|\n")
	for _, c := range causes {
		fmt.Fprintf(&b, "| %s | `%v`: %s |\n", c.letter, c.kind, c.says)
	}
	all := make([]string, every)
	for i := range all {
		all[i] = causes[i].letter
	}
	fmt.Fprintf(&b, "| all | %s |\n\n", strings.Join(all, " "))
	b.WriteString("A refused turn ends with the dialect's error and the reason, never as if it were whole; docs/DIALECTS.md says what the reasons mean.\n\n## Powers\n\n")
	b.WriteString("| | `dialect` | framing | held by the provider | mode `events` | later turns |\n|---|---|---|---|---|---|\n")
	for _, s := range sections {
		fmt.Fprintf(&b, "| %s | `%s` | %s |\n", s.as(), s.d.Name(), strings.Join(powers(s.d), " | "))
	}
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n| plan | %s |\n|---|%s\n", s.as(), s.says, strings.Join(turns, " | "), strings.Repeat("---|", len(turns)))
		for _, how := range rows(claims, s.as()) {
			words := "`" + how + "`"
			if plans[how] != "" {
				words += " " + plans[how]
			}
			if reason, ok := strings.CutPrefix(how, refused); ok {
				words = refused + "`" + reason + "`"
			}
			fmt.Fprintf(&b, "| %s |", words)
			for _, of := range turns {
				fmt.Fprintf(&b, " %s |", cell(claims, claim{family: s.as(), how: how, turn: of}))
			}
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// powers are what a dialect offers beyond the contract.
func powers(d dialect.Dialect) []string {
	framing, held, events, later := "event stream", "", "", ""
	if f, ok := d.(dialect.Framed); ok {
		framing = "`" + f.ContentType() + "`"
	}
	if _, ok := d.(dialect.Holder); ok {
		held = "attached to"
	}
	if _, ok := d.(dialect.Backgrounder); ok {
		held += ", on request"
	}
	if _, ok := d.(dialect.Checkpointer); ok {
		held = "from its tokens"
	}
	if d.Traits().EventsMode {
		events = "yes"
	}
	if _, ok := d.(dialect.Historian); ok {
		later = "notes"
	}
	if _, ok := d.(dialect.Lineage); ok {
		later += ", ids"
	}
	return []string{framing, held, events, later}
}

// rows are the plans of a family, and behind them its refusals.
func rows(claims map[claim]bool, family string) (out []string) {
	for c := range claims {
		if c.family == family && !slices.Contains(out, c.how) {
			out = append(out, c.how)
		}
	}
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a, b))
	})
	return out
}

func place(how string) int {
	if at := slices.Index(planOrder, how); at >= 0 {
		return at
	}
	return len(planOrder)
}

func cell(claims map[claim]bool, c claim) string {
	var letters []string
	common := 0
	for i, k := range causes {
		if c.cause = k.kind; claims[c] {
			letters = append(letters, k.letter)
			if i < every {
				common++
			}
		}
	}
	if common == every {
		letters = append([]string{"all"}, letters[every:]...)
	}
	return strings.Join(letters, " ")
}

// readSupport reads the claims of a page. Its words are those of the code, and every
// family has its table.
func readSupport(page string) (map[claim]bool, error) {
	claims := map[claim]bool{}
	var found []string
	family := ""
	for line := range strings.Lines(page) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			if family = name; name != "Powers" {
				found = append(found, name)
			}
			continue
		}
		if !strings.HasPrefix(line, "| `") && !strings.HasPrefix(line, "| "+refused) || family == "" || family == "Powers" {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		words := strings.Split(cells[0], "`")
		how := words[1]
		if strings.TrimSpace(words[0]) != "" {
			how = refused + how
		} else if plans[how] == "" {
			return nil, fmt.Errorf("%s: no plan is called %q", family, how)
		}
		if len(cells) != 1+len(turns) {
			return nil, fmt.Errorf("%s: %d cells in the row of %s", family, len(cells), how)
		}
		for i, of := range turns {
			for letter := range strings.FieldsSeq(cells[1+i]) {
				kinds := causesOf(letter)
				if kinds == nil {
					return nil, fmt.Errorf("%s: no cause has the letter %q", family, letter)
				}
				for _, k := range kinds {
					claims[claim{family, how, of, k}] = true
				}
			}
		}
	}
	var want []string
	for _, s := range sections {
		want = append(want, s.as())
	}
	if !slices.Equal(found, want) {
		return nil, fmt.Errorf("tables for %v, want %v", found, want)
	}
	return claims, nil
}

func causesOf(letter string) (kinds []interrupt.Kind) {
	for i, c := range causes {
		if c.letter == letter || letter == "all" && i < every {
			kinds = append(kinds, c.kind)
		}
	}
	return kinds
}
