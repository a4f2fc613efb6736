package gauge

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/unbroken-llm/unbroken/sse"
)

// errNoEvent is that of an answer which is none of the wire's.
var errNoEvent = errors.New("an answer without an event")

// Listen reads a stream to its end and tells heard of each piece of text, and when its bytes
// came. nil is that the terminal came too: an end without it is a break.
func (w Wire) Listen(r io.Reader, heard func(at time.Time, text string)) error {
	var scan sse.Scanner
	buf, some, whole := make([]byte, 16<<10), false, false
	for {
		n, err := r.Read(buf)
		at := time.Now()
		scan.Push(buf[:n])
		for e, ok := scan.Next(); ok; e, ok = scan.Next() {
			if len(e.Data) == 0 {
				continue
			}
			text, end, fault := w.said(e.Data)
			if fault != nil {
				return fault
			}
			some, whole = true, whole || end
			if text != "" {
				heard(at, text)
			}
		}
		switch {
		case errors.Is(err, io.EOF) && whole:
			return scan.Err()
		case errors.Is(err, io.EOF) && !some:
			return errNoEvent
		case errors.Is(err, io.EOF):
			return errors.New("the stream ended early")
		case err != nil:
			return fmt.Errorf("the stream broke: %w", err)
		}
	}
}
