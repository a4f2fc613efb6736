package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/internal/golden"
)

// alone are faults that clients meet without a proxy: what the README tells of
// them is measured here. A stall is not among them: they wait for minutes.
var alone = []fault{
	{name: "rst", script: "attempt 1: pace 4ms; rst CUT"},
	{name: "fin", script: "attempt 1: fin CUT"},
	{name: "polite end", script: "attempt 1: polite CUT"},
	{name: "half an event, polite end", script: "attempt 1: half with polite CUT"},
	{name: "close-delimited body", script: "attempt 1: eof10 CUT"},
	{name: "in-band overloaded", script: "attempt 1: error overloaded CUT"},
	{name: "in-band error in a chunk", script: "attempt 1: error api as chunk CUT", on: onlyChat},
	{name: "finish_reason error", script: "attempt 1: error api as finish CUT", on: onlyChat},
	{name: "garbage", script: "attempt 1: garbage CUT; fin before finish"},
	{name: "polite end before the finish", script: "attempt 1: polite before finish"},
	{name: "empty 200", script: "attempt 1: empty"},
	{name: "529", script: "attempt 1: status 529 retry-after-ms 40"},
	{name: "400", script: "attempt *: status 400"},
}

// fates are what becomes of a call without a proxy.
const fates = "W whole, R whole by the client's own retry, E error, S silently cut, B silently cut with a broken call"

func TestGoClientsAlone(t *testing.T) { runAlone(t, goClients, "testdata/alone-go.txt") }

func TestNodeClientsAlone(t *testing.T) { runAlone(t, inNode(t), "testdata/alone-node.txt") }

// runAlone has each client meet each fault at the provider itself.
func runAlone(t *testing.T, clients []client, file string) {
	direct := newProvider(t, faultinject.OpenAI)
	cells := make([][]byte, len(alone)*len(clients)) // by fault, then by client
	t.Run("alone", func(t *testing.T) {
		for ci, c := range clients {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				m := &measure{client: c, direct: direct, seen: map[string]func() (outcome, error){}}
				for fi := range alone {
					cell := &cells[fi*len(clients)+ci]
					if !alone[fi].meets(c) {
						*cell = bytes.Repeat([]byte{' '}, len(scenarios))
						continue
					}
					t.Run(alone[fi].name, func(t *testing.T) {
						t.Parallel()
						*cell = fatesOf(t, m, &alone[fi], ci+fi)
					})
				}
			})
		}
	})
	var b strings.Builder
	for i, c := range clients {
		fmt.Fprintf(&b, "%2d %s\n", i+1, c.name)
	}
	b.WriteString("\na letter for each of:")
	for _, sc := range scenarios {
		b.WriteString(" " + sc.name + ",")
	}
	fmt.Fprintf(&b, " without a proxy\n%s\n\n%-30s", fates, "")
	for i := range clients {
		fmt.Fprintf(&b, " %-*d", len(scenarios), i+1)
	}
	b.WriteByte('\n')
	for fi := range alone {
		fmt.Fprintf(&b, "%-30s", alone[fi].name)
		for ci := range clients {
			b.WriteByte(' ')
			b.Write(cells[fi*len(clients)+ci])
		}
		b.WriteByte('\n')
	}
	t.Logf("\n%s", b.String())
	got := []byte(b.String())
	if !everyFate() {
		got = asTold(got, golden.Read(t, file))
	}
	golden.Compare(t, file, got)
}

// untried stands for a fate that the sample leaves out.
const untried = '?'

// everyFate: what is written must have been seen, all of it.
func everyFate() bool { return *full || *nthClient == 1 || golden.Rewriting() }

// asTold has what was not tried from the page.
func asTold(got, page []byte) []byte {
	for i := range min(len(got), len(page)) {
		if got[i] == untried {
			got[i] = page[i]
		}
	}
	return got
}

// fatesOf has a client meet a fault in each scenario, or the nth third of them.
func fatesOf(t *testing.T, m *measure, f *fault, nth int) (fates []byte) {
	for i, sc := range scenarios {
		if (i+nth)%3 > 0 && !everyFate() {
			fates = append(fates, untried)
			continue
		}
		want := m.of(t, sc, "").reply.Message
		fates = append(fates, fate(m.of(t, sc, f.line(sc, m.client.speaks)), want))
	}
	return fates
}

// fate tells what a caller was left with.
func fate(o outcome, want message) byte {
	got := o.reply.Message
	var p problems
	p.calls(got.Calls, want.Calls[:min(len(got.Calls), len(want.Calls))])
	switch {
	case o.reply.Failure != nil:
		return 'E'
	case len(p) > 0:
		return 'B'
	case got.Text != want.Text || len(got.Calls) != len(want.Calls) || got.Finish != want.Finish:
		return 'S'
	case len(o.exchanges) > 1:
		return 'R'
	default:
		return 'W'
	}
}
