package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"golang.org/x/term"
)

// way is one of the two ways from the client to the provider.
type way int

const (
	straight way = iota
	healing
)

func (w way) String() string { return [...]string{"direct", "unbroken"}[w] }

// display shows a demo while it plays. Nothing of it is called by two at a time.
type display interface {
	// begin opens a scene, the nth of several.
	begin(n, of int, sc scene)
	// start opens one way of it.
	start(w way)
	// say shows a piece of what the client hears on the way that was started.
	say(piece string)
	// tell replaces what is known of the interruption.
	tell(facts []fact)
	// verdict closes the way that was started.
	verdict(well bool, text string)
	// end closes the demo, whether or not it came to its results.
	end(results []*result)
	// pause leaves a scene there to be read.
	pause(ctx context.Context) error
}

// fact is one line of what the proxy did about an interruption.
type fact struct{ name, text string }

// newDisplay is the view on a terminal that has room for it, and plain lines
// elsewhere: also where NO_COLOR (no-color.org) or TERM=dumb asks for them.
func newDisplay(env environment, plain bool) display {
	out, isFile := env.out.(*written).w.(*os.File)
	noColour, _ := env.lookup("NO_COLOR")
	kind, _ := env.lookup("TERM")
	if plain || !isFile || noColour != "" || kind == "" || kind == "dumb" || !term.IsTerminal(int(out.Fd())) {
		return &screen{w: env.out, width: plainWidth}
	}
	size := func() (int, int) {
		width, height, err := term.GetSize(int(out.Fd()))
		if err != nil {
			return viewWidth, viewHeight
		}
		return width, height
	}
	if width, height := size(); width < viewWidth || height < viewHeight {
		return &screen{w: env.out, width: plainWidth}
	}
	return &view{w: env.out, size: size}
}

// summary writes the table at the end of a demo.
func summary(to io.Writer, results []*result) {
	if len(results) == 0 {
		return
	}
	fmt.Fprintf(to, "\n%-40s %-26s %s\n", "", "direct", "through unbroken")
	for _, r := range results {
		fmt.Fprintf(to, "%-40s %-26s %s\n", r.scene.title(), r.directly(), r.through())
	}
}
