package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// The view's smallest terminal.
const (
	viewWidth  = 80
	viewHeight = 24
)

// view shows a demo on a terminal: both ways side by side as they come, and what
// happens below. It uses the terminal's other screen, and gives the first one back
// in the end, with the results on it.
type view struct {
	w    io.Writer
	size func() (width, height int)
	rest time.Duration // between two scenes

	opened bool
	title  string
	panes  [2]pane
	now    way
	facts  []fact
	done   []string
}

// pane is what one way has brought.
type pane struct {
	text string
	seam int // bytes of the text that came before the interruption; 0: none yet
	well bool
	end  string // the verdict, once there is one
}

// What the terminal is told: the other screen and back, without and with a cursor.
const (
	enter = "\x1b[?1049h\x1b[?25l\x1b[2J"
	leave = "\x1b[?25h\x1b[?1049l"
	home  = "\x1b[H"
	erase = "\x1b[K" // to the end of the line
	reset = "\x1b[0m"
)

func (v *view) begin(n, of int, sc scene) {
	v.title = clean(fmt.Sprintf("%d/%d  %s  (%s)", n, of, sc.title(), sc.model))
	v.panes, v.facts = [2]pane{}, nil
	if !v.opened {
		v.opened = true
		io.WriteString(v.w, enter)
	}
	v.draw()
}

func (v *view) start(w way) { v.now = w }

func (v *view) say(piece string) {
	v.panes[v.now].text += clean(piece)
	v.draw()
}

func (v *view) tell(facts []fact) {
	if p := &v.panes[v.now]; len(facts) > 0 && p.seam == 0 {
		p.seam = len(p.text)
	}
	v.facts = facts
	v.draw()
}

func (v *view) verdict(well bool, text string) {
	p := &v.panes[v.now]
	p.well, p.end = well, mark(well)+" "+clean(text)
	if v.now == healing {
		title, _, _ := strings.Cut(v.title, "  (")
		v.done = append(v.done, fmt.Sprintf("%s %-40s %s", mark(well), title, v.panes[straight].end))
	}
	v.draw()
}

// end leaves the other screen, always: also when somebody has seen enough.
func (v *view) end(results []*result) {
	if v.opened {
		v.opened = false
		io.WriteString(v.w, leave)
	}
	summary(v.w, results)
}

func (v *view) pause(ctx context.Context) error {
	select {
	case <-time.After(v.rest):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx) // somebody has seen enough
	}
}

// draw paints a whole frame in one write.
func (v *view) draw() {
	width, height := v.size()
	var b strings.Builder
	b.WriteString(home)
	for i, l := range v.frame(min(width, 110)) {
		if i >= height {
			break
		}
		if i > 0 {
			b.WriteString("\r\n")
		}
		for _, s := range l {
			if s.colour == "" {
				b.WriteString(s.text)
			} else {
				b.WriteString("\x1b[" + s.colour + "m" + s.text + reset)
			}
		}
		b.WriteString(erase)
	}
	io.WriteString(v.w, b.String())
}
