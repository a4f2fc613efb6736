package gauge

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// dotted is how often a line that is not ended yet shows that something goes on.
const dotted = 2 * time.Second

// progress begins a line of the log about something that takes its time; done ends it with
// the outcome. On a terminal dots come in between. In a file or a pipe they would tell nobody
// anything, and only stand between the columns.
func progress(log io.Writer, format string, args ...any) (done func(outcome string)) {
	f, ok := log.(*os.File)
	return line(log, fmt.Sprintf(format, args...), ok && term.IsTerminal(int(f.Fd())))
}

// line is progress. A colon ends what is done, before the blanks that fill its column.
func line(log io.Writer, what string, dots bool) (done func(outcome string)) {
	name := strings.TrimRight(what, " ")
	fmt.Fprint(log, name+":"+what[len(name):]+" ")
	over := make(chan struct{})
	var wg sync.WaitGroup
	if dots {
		wg.Go(func() {
			t := time.NewTicker(dotted)
			defer t.Stop()
			for n := 0; ; n++ {
				select {
				case <-over:
					if n > 0 {
						fmt.Fprint(log, " ")
					}
					return
				case <-t.C:
					fmt.Fprint(log, ".")
				}
			}
		})
	}
	return func(outcome string) {
		close(over)
		wg.Wait()
		fmt.Fprintln(log, outcome)
	}
}
