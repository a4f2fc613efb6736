package e2e

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
)

// sheet is the table that is printed: a row for each fault, a column for each
// client, a letter for each scenario.
type sheet struct {
	clients []client

	mu       sync.Mutex
	cells    map[string]map[string][]byte // by fault, by client
	count    map[verdict]int
	requests int
}

func newSheet(clients []client) *sheet {
	return &sheet{clients: clients, cells: map[string]map[string][]byte{}, count: map[verdict]int{}}
}

func (s *sheet) enter(f *fault, c client, sc *scenario, v verdict, requests int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	row := s.cells[f.name]
	if row == nil {
		row = map[string][]byte{}
		s.cells[f.name] = row
	}
	if row[c.name] == nil {
		row[c.name] = bytes.Repeat([]byte{'-'}, len(scenarios))
	}
	for i := range scenarios {
		if scenarios[i] == sc {
			row[c.name][i] = byte(v)
		}
	}
	s.count[v]++
	s.requests += requests
}

// String renders what was entered.
func (s *sheet) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for i, c := range s.clients {
		fmt.Fprintf(&b, "%2d %s\n", i+1, c.name)
	}
	b.WriteString("\na letter for each of:")
	for _, sc := range scenarios {
		b.WriteString(" " + sc.name + ",")
	}
	fmt.Fprintf(&b, " where it was tried\n%s\n\n%-40s", verdictWords, "")
	for i := range s.clients {
		fmt.Fprintf(&b, " %-*d", len(scenarios), i+1)
	}
	b.WriteByte('\n')
	for i := range faults {
		row := s.cells[faults[i].name]
		if row == nil {
			continue
		}
		fmt.Fprintf(&b, "%-40s", faults[i].name)
		for _, c := range s.clients {
			fmt.Fprintf(&b, " %-*s", len(scenarios), row[c.name])
		}
		b.WriteByte('\n')
	}
	total := 0
	for _, n := range s.count {
		total += n
	}
	fmt.Fprintf(&b, "\n%d cases, %d requests to the provider:", total, s.requests)
	for _, w := range strings.Split(verdictWords, ", ") {
		fmt.Fprintf(&b, " %d %s,", s.count[verdict(w[0])], w[2:])
	}
	return strings.TrimSuffix(b.String(), ",") + "\n"
}
