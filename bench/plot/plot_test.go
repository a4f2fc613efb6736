package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"reflect"
	"strings"
	"testing"
)

// parses fails unless s is well-formed XML, and returns how often an element occurs.
func parses(t *testing.T, s, element string) (n int) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(s))
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return n
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, s)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == element {
			n++
		}
	}
}

var two = Lines{Title: "a < b", X: "n", Y: "µs", Lines: []Line{
	{Name: "one & only", Points: []Point{{1, 1}, {10, 5}, {100, 5}}},
	{Name: "none"},
	{Name: "two", Points: []Point{{1, 2}, {100, 5}}},
}}

func TestDrawingsAreWellFormed(t *testing.T) {
	if n := parses(t, two.SVG(), "polyline"); n != 2 {
		t.Errorf("%d lines", n)
	}
	if n := parses(t, Bars([]Bar{{Name: "<a>", Value: 2, Label: "2 & more"}, {Name: "b", Value: 0}}), "rect"); n != 2 {
		t.Errorf("%d bars", n)
	}
	if n := parses(t, Standalone(two.SVG(), two.SVG()), "svg"); n != 3 {
		t.Errorf("%d drawings", n)
	}
}

func TestWhatIsMarkedIsInTheDrawing(t *testing.T) {
	p := two
	p.Spans, p.Levels = []Span{{10, 55, "<away>"}}, []Level{{20, "the & most"}}
	svg := p.SVG()
	if n := parses(t, svg, "rect"); n != 1 {
		t.Errorf("%d spans", n)
	}
	// From 1 to 100 are 546 pixels behind the first 64.
	for _, want := range []string{`<rect x="113.6" y="34" width="248.2" height="170"`, "&lt;away&gt;", "the &amp; most", "stroke-dasharray"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
	if !strings.Contains(svg, ">20</text>") {
		t.Error("a level above all lines is not on the axis")
	}
}

func TestALogarithmicAxisHasPowersOfTen(t *testing.T) {
	p := two
	p.LogX = true
	for _, want := range []string{">1</text>", ">10</text>", ">100</text>"} {
		if !strings.Contains(p.SVG(), want) {
			t.Errorf("no %s in\n%s", want, p.SVG())
		}
	}
	s := scale{from: 1, to: 100, low: 0, all: 10, log: true}
	if got := s.at(10); math.Abs(got-5) > 1e-9 {
		t.Errorf("10 is at %v", got)
	}
}

func TestNothingToDrawIsNoDrawing(t *testing.T) {
	for _, p := range []Lines{{}, {Lines: []Line{{Name: "a", Points: []Point{{3, 1}}}}}} {
		if got := p.SVG(); got != "" {
			t.Errorf("%q", got)
		}
	}
	if got := Bars([]Bar{{Name: "a"}}); got != "" {
		t.Errorf("%q", got)
	}
}

func TestTicksAreRound(t *testing.T) {
	for _, c := range []struct {
		from, to float64
		want     []float64
	}{{0, 10, []float64{0, 2, 4, 6, 8, 10}}, {0, 0.6, []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6}}, {30, 1800, []float64{500, 1000, 1500}}} {
		got := scale{from: c.from, to: c.to}.ticks()
		for i := range got {
			got[i] = math.Round(got[i]*1e6) / 1e6
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v to %v: %v", c.from, c.to, got)
		}
	}
}

// Lines that end at one height had their names on top of each other.
func TestNamesDoNotOverlap(t *testing.T) {
	got := spread([]name{{"a", "", 50}, {"b", "", 50}, {"c", "", 52}, {"d", "", top + tall}, {"e", "", top + tall}}, 14)
	for i := 1; i < len(got); i++ {
		if got[i].y-got[i-1].y < 14 {
			t.Errorf("%v", got)
		}
	}
	if got[len(got)-1].y > top+tall {
		t.Errorf("the last hangs below the plot: %v", got)
	}
}
