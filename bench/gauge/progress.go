package gauge

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// progress begins a line of the log about something that takes its time. A dot comes every
// two seconds; done ends the line with the outcome.
func progress(log io.Writer, format string, args ...any) (done func(outcome string)) {
	fmt.Fprintf(log, format+" ", args...)
	over := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		t := time.NewTicker(2 * time.Second)
		defer t.Stop()
		for {
			select {
			case <-over:
				return
			case <-t.C:
				fmt.Fprint(log, ".")
			}
		}
	})
	return func(outcome string) {
		close(over)
		wg.Wait()
		fmt.Fprintln(log, " "+outcome)
	}
}
