package gauge

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/unbroken-llm/unbroken/bench/plot"
)

// Write writes soak.json, soak.md and soak.svg to a directory.
func (s Soaked) Write(dir string) error {
	raw, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "soak.json"), raw, 0o644),
		os.WriteFile(filepath.Join(dir, "soak.md"), []byte(s.markdown()), 0o644),
		os.WriteFile(filepath.Join(dir, "soak.svg"), []byte(s.plot()), 0o644))
}

func (s Soaked) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Soak

%d clients ask %s for turn after turn of the wire %s, for %s; %.0f %% of all attempts, continuations too, are cut in the middle. Of %d turns %d
were whole, word for word. %s. `+"`make soak`"+` plays it again.

![memory, goroutines and turns over time](soak.svg)

`, s.Clients, s.Peer, s.Wire, time.Duration(s.Took*float64(time.Second)).Round(time.Second), 100*s.Rate, s.Whole+s.Broken, s.Whole, s.Machine)
	b.WriteString("| | first third | last third | line gains | an hour | bound | |\n|---|---|---|---|---|---|---|\n")
	for _, t := range s.Trends {
		verdict := "does not grow"
		if t.Grows() {
			verdict = "**grows**"
		}
		fmt.Fprintf(&b, "| %s | %.1f | %.1f | %+.1f | %+.1f | %.1f | %s |\n", t.Name, t.First, t.Last, t.Gain, t.Slope, t.Bound, verdict)
	}
	fmt.Fprintf(&b, "\nThirds are medians, the line is that of the least squares, both without the first %.0f s. Something grows if the last third is above the first by more than\n"+
		"the bound, and the line gains more than the bound too: the one is blind for chance at the end, the other for a step at the beginning.\n", s.Warm)
	for i, fault := range counted(s.Faults) {
		if i == 0 {
			b.WriteString("\nTurns that were not whole:\n\n")
		}
		fmt.Fprintf(&b, "- %s\n", fault)
	}
	return b.String()
}

func (s Soaked) plot() string {
	line := func(name string, of func(Look) float64) plot.Line {
		l := plot.Line{Name: name}
		for _, k := range s.Looks {
			l.Points = append(l.Points, plot.Point{X: k.At / 60, Y: of(k)})
		}
		return l
	}
	return plot.Standalone(
		plot.Lines{Title: "memory", X: "min", Y: "MB", Lines: []plot.Line{
			line("resident", func(k Look) float64 { return k.Memory }), line("heap in use", func(k Look) float64 { return k.Heap })}}.SVG(),
		plot.Lines{Title: "goroutines and open files", X: "min", Lines: []plot.Line{
			line("goroutines", func(k Look) float64 { return k.Goroutines }), line("open files", func(k Look) float64 { return k.Files })}}.SVG(),
		plot.Lines{Title: "turns", X: "min", Lines: []plot.Line{
			line("whole", func(k Look) float64 { return float64(k.Whole) }), line("not whole", func(k Look) float64 { return float64(k.Broken) })}}.SVG(),
	)
}
