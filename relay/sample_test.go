package relay_test

import (
	"flag"
	"testing"

	"github.com/unbroken-llm/unbroken/relay/relaytest"
)

// everyBoundary plays every cut that the batteries know: make battery. Otherwise they
// play a sample, always the same one, in which every dialect meets every way to be cut
// on every kind of host with every kind of seam.
var everyBoundary = flag.Bool("battery.full", false, "cut everywhere, not at a sample of places")

// What a sample has of a family, at least; and of one recording, however many others
// there are.
const (
	boundaryCases, boundaryCasesEach = 400, 24
	byteCases, byteCasesEach         = 120, 8
)

// way is a kind of host and how its model behaves at the seam.
type way struct {
	target
	relaytest.Seam
}

func (f family) hosts() []target {
	if f.targets != nil {
		return f.targets
	}
	return targets
}

func (f family) ways() (out []way) {
	for _, m := range f.hosts() {
		for _, s := range m.seams {
			out = append(out, way{m, s})
		}
	}
	return out
}

// everywhere are the cases of each recording.
func (f family) everywhere(recs []relaytest.Recording) [][]scenario {
	out := make([][]scenario, len(recs))
	var d dealer
	for i, r := range recs {
		if *everyBoundary {
			out[i] = f.full(r)
			continue
		}
		out[i] = f.sample(r, len(recs), &d)
	}
	return out
}

// dealer deals pairs of a cut and a way, for one recording after the other: the first
// len(cuts)*len(ways) are all there are, and neighbours differ in both.
type dealer struct{ boundary, byte int }

func (d *dealer) next(ways []way) (cut, way) {
	n := d.boundary
	d.boundary++
	round := n / lcm(len(cuts), len(ways))
	return cuts[n%len(cuts)], ways[(n+round)%len(ways)]
}

func lcm(a, b int) int {
	n := a
	for n%b != 0 {
		n += a
	}
	return n
}

// sample has cuts at event boundaries, the first and last few of them and others evenly
// spread, and inside events.
func (f family) sample(r relaytest.Recording, of int, d *dealer) (out []scenario) {
	ways, hosts := f.ways(), f.hosts()
	n := max(boundaryCasesEach, boundaryCases/of)
	bounds := sampled(boundaries(r), n)
	rounds := min(len(cuts), max(1, n/len(bounds)))
	for _, at := range bounds {
		for range rounds {
			c, w := d.next(ways)
			out = append(out, scenario{rec: r, at: at, cut: c, target: w.target, seam: w.Seam})
		}
	}
	size := len(r.Stream())
	for b := 1; b < size; b += max(1, size/max(byteCasesEach, byteCases/of)) {
		out = append(out, scenario{rec: r, at: b, cut: cuts[d.byte%4], target: hosts[d.byte/4%len(hosts)], seam: relaytest.Honest})
		d.byte++
	}
	return out
}

// full spreads causes, manners and seams over every event boundary and a stride of
// bytes. Short recordings get the full product.
func (f family) full(r relaytest.Recording) (out []scenario) {
	ways, hosts, bounds := f.ways(), f.hosts(), boundaries(r)
	size := len(r.Stream())
	turnOf := 0
	add := func(at int, c cut, w way) {
		out = append(out, scenario{rec: r, at: at, cut: c, target: w.target, seam: w.Seam})
	}
	// What a recording costs grows with its size twice: fewer rounds for long ones.
	rounds, bytewise := 3, 150
	if size > 48<<10 {
		rounds, bytewise = 1, 30
	}
	product := len(bounds) <= 16 && size < 12<<10
	for _, at := range bounds {
		if product {
			for _, c := range cuts {
				for _, w := range ways {
					add(at, c, w)
				}
			}
			continue
		}
		for range rounds {
			add(at, cuts[turnOf/3%len(cuts)], ways[turnOf%len(ways)])
			turnOf++
		}
	}
	for b := 1; b < size; b += max(1, size/bytewise) {
		add(b, cuts[turnOf%4], way{hosts[turnOf/3%len(hosts)], relaytest.Honest})
		turnOf++
	}
	return out
}

// boundaries are the places between events, with both ends, in bytes.
func boundaries(r relaytest.Recording) []int {
	out := []int{0}
	at := 0
	for _, u := range r.Units {
		at += len(u)
		out = append(out, at)
	}
	return out
}

// sampled keeps n of the boundaries, at least 20, evenly spread, the first and last few
// among them.
func sampled(bounds []int, n int) []int {
	if n = max(n, 20); len(bounds) <= n {
		return bounds
	}
	const ends = 8
	out := append([]int(nil), bounds[:ends]...)
	inner, want := len(bounds)-2*ends, n-2*ends
	for i := range want {
		out = append(out, bounds[ends+i*inner/want])
	}
	return append(out, bounds[len(bounds)-ends:]...)
}

// meets fails if a family does not meet every way to be cut on every host with every
// seam: a sample must not lose a kind.
func (f family) meets(t *testing.T, cases [][]scenario) {
	t.Helper()
	type kind struct {
		cut, target string
		seam        relaytest.Seam
	}
	met := map[kind]int{}
	for _, of := range cases {
		for _, c := range of {
			met[kind{c.cut.name, c.target.name, c.seam}]++
		}
	}
	for _, c := range cuts {
		for _, w := range f.ways() {
			if met[kind{c.name, w.target.name, w.Seam}] == 0 {
				t.Errorf("%s: nothing is cut by %s on a host that is %s, and continued as %s", f.name, c.name, w.target.name, w.Seam)
			}
		}
	}
}
