package faultinject

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/andybalholm/brotli"
)

// drive sends one response and performs the actions of its faults. It is the
// only place that waits.
type drive struct {
	w      wire
	faults []Fault
	pos    Position
	setup  Setup
	pace   time.Duration
	closed <-chan struct{} // the server closes
	kept   *keptResponse   // lives on without the client, and sets the pace
	first  int             // its first event that is sent

	status   int
	turn     string // its key, with a target
	total    int64  // length of the whole body
	sent     int    // whole events
	bytes    int64
	spoke    time.Time
	last     time.Time
	finished bool // the finish of the answer was sent
	applied  bool
	seen     map[Kind]int
	zip      compressor
	zipped   bytes.Buffer
}

// compressor is what gzip and brotli writers share.
type compressor interface {
	io.WriteCloser
	Flush() error
}

// open asks the faults what to do before anything is sent. It reports an
// ending if the response is over by that.
func (d *drive) open() Ending {
	d.seen = map[Kind]int{}
	d.pos.Phase = PhaseOpen
	for _, f := range d.faults {
		a := f.Next(d.pos, nil)
		if a.Reply != nil {
			return d.reply(a.Reply)
		}
		if a.Setup != (Setup{}) {
			d.applied = true
			d.setup = d.setup.merge(a.Setup)
		}
		if e := d.perform(a.Steps); e != "" {
			return e
		}
	}
	return ""
}

// head sends the status and the headers, as the setup changes them.
func (d *drive) head(status int, h http.Header) Ending {
	switch d.setup.ContentType {
	case "":
	case "none":
		h["Content-Type"] = nil // keeps net/http from guessing one
	default:
		h.Set("Content-Type", d.setup.ContentType)
	}
	switch d.setup.Encoding {
	case "gzip":
		d.zip = gzip.NewWriter(&d.zipped)
	case "br":
		d.zip = brotli.NewWriter(&d.zipped)
	}
	if d.zip != nil {
		h.Set("Content-Encoding", d.setup.Encoding)
	}
	if d.setup.CloseDelimited {
		h.Set("Transfer-Encoding", "identity") // net/http: no chunks, close at the end
	}
	if d.setup.Length && d.zip == nil && d.total > 0 {
		h.Set("Content-Length", strconv.FormatInt(d.total, 10))
	}
	d.status = status
	if err := d.w.head(d.status, h); err != nil {
		return ClientClosed
	}
	return d.fixed(PhaseHead)
}

// reply answers a whole response.
func (d *drive) reply(r *Reply) Ending {
	d.applied, d.status = true, r.Status
	h := r.Header.Clone()
	if r.RetryAt > 0 {
		h.Set("Retry-After", time.Now().Add(r.RetryAt).UTC().Format(http.TimeFormat))
	}
	h.Set("Content-Length", strconv.Itoa(len(r.Body)))
	if d.w.head(r.Status, h) != nil || len(r.Body) > 0 && d.put(r.Body) != nil {
		return ClientClosed
	}
	d.w.end(Step{End: EndPolite})
	return Replied
}

// play performs a whole response.
func (d *drive) play(h http.Header, events []Event) Ending {
	end := d.open()
	if end == "" {
		end = d.head(http.StatusOK, h)
	}
	for i, e := range events {
		if end != "" {
			return end
		}
		var more bool
		if more, end = d.due(d.first + i); !more {
			break // cancelled, or over
		}
		end = d.event(e)
	}
	if end == "" {
		end = d.finish()
	}
	return end
}

// event sends one event, unless a fault does something else.
func (d *drive) event(e Event) Ending {
	if d.pos.Event > 0 && d.pace > 0 {
		if end := d.wait(d.pace); end != "" {
			return end
		}
	}
	at := time.Now()
	d.seen[e.Kind]++
	d.pos.Phase, d.pos.Kind, d.pos.Nth = PhaseEvent, e.Kind, d.seen[e.Kind]
	d.pos.Event++
	defer func(n int64) { d.pos.Byte = n }(d.pos.Byte + int64(len(e.Raw)))
	for _, f := range d.faults {
		if a := f.Next(d.pos, e.Raw); a.Steps != nil {
			whole := len(a.Steps[0].Write) >= len(e.Raw)
			end := d.perform(a.Steps)
			if whole || end == "" {
				d.delivered(e, at)
			}
			return end
		}
	}
	if end := d.write(e.Raw); end != "" {
		return end
	}
	d.delivered(e, at)
	return ""
}

// delivered notes an event that was sent as a whole, and when that began.
func (d *drive) delivered(e Event, at time.Time) {
	d.sent++
	d.last = at
	if d.spoke.IsZero() && (e.Kind == KindText || e.Kind == KindThinking || e.Kind == KindTool || e.Kind == KindArgs) {
		d.spoke = at
	}
	d.finished = d.finished || e.Kind == KindFinish || e.Kind == KindEnd
}

// finish ends the response after its last event.
func (d *drive) finish() Ending {
	if end := d.fixed(PhaseDone); end != "" {
		return end
	}
	if d.zip != nil {
		if d.zip.Close() != nil || d.put(d.zipped.Bytes()) != nil {
			return ClientClosed
		}
	}
	d.w.end(Step{End: EndPolite})
	return Complete
}

// fixed asks the faults at a phase that has no event.
func (d *drive) fixed(p Phase) Ending {
	d.pos.Phase, d.pos.Kind, d.pos.Nth = p, "", 0
	for _, f := range d.faults {
		if end := d.perform(f.Next(d.pos, nil).Steps); end != "" {
			return end
		}
	}
	return ""
}

// perform does the steps of an action and reports how the response ended, if
// it did.
func (d *drive) perform(steps []Step) Ending {
	for _, s := range steps {
		d.applied = true
		if end := d.step(s); end != "" {
			return end
		}
	}
	return ""
}

func (d *drive) step(s Step) Ending {
	for n := 0; ; n++ {
		if s.Beat != nil {
			s.Write = s.Beat(n)
		}
		if len(s.Write) > 0 {
			if end := d.write(s.Write); end != "" {
				return end
			}
		}
		if s.Every == 0 {
			break
		}
		if end := d.wait(s.Every); end != "" {
			return end
		}
	}
	if s.Wait > 0 {
		if end := d.wait(s.Wait); end != "" {
			return end
		}
	}
	switch s.End {
	case EndNone:
		return ""
	case EndHang:
		return d.wait(0)
	}
	d.w.end(s)
	if s.End == EndGoAway && s.Cover {
		return ""
	}
	return map[End]Ending{EndPolite: CutPolite, EndFIN: CutFIN, EndReset: CutReset, EndStream: CutStream, EndGoAway: CutGoAway}[s.End]
}

// wait pauses; zero is until the client leaves or the server closes.
func (d *drive) wait(pause time.Duration) Ending { return d.waitOr(pause, nil) }

// waitOr is wait that something else can end, too.
func (d *drive) waitOr(pause time.Duration, other <-chan struct{}) Ending {
	var over <-chan time.Time
	if pause > 0 {
		t := time.NewTimer(pause)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-over:
		return ""
	case <-other:
		return ""
	case <-d.w.gone():
		return ClientClosed
	case <-d.closed:
		d.w.end(Step{End: EndFIN})
		return ServerClosed
	}
}

// write sends body bytes through the compressor and in pieces, if so set up.
func (d *drive) write(p []byte) Ending {
	select {
	case <-d.w.gone():
		return ClientClosed
	default:
	}
	if d.zip != nil {
		d.zipped.Reset()
		if _, err := d.zip.Write(p); err != nil {
			panic("BUG: compressing into memory failed: " + err.Error())
		}
		if err := d.zip.Flush(); err != nil {
			panic("BUG: compressing into memory failed: " + err.Error())
		}
		p = bytes.Clone(d.zipped.Bytes())
		d.zipped.Reset()
	}
	for len(p) > 0 {
		n := len(p)
		if d.setup.Piece > 0 {
			n = min(n, d.setup.Piece)
		}
		if d.put(p[:n]) != nil {
			return ClientClosed
		}
		if p = p[n:]; len(p) > 0 && d.setup.Pause > 0 {
			if end := d.wait(d.setup.Pause); end != "" {
				return end
			}
		}
	}
	return ""
}

func (d *drive) put(p []byte) error {
	err := d.w.write(p)
	if err == nil {
		d.bytes += int64(len(p))
	}
	return err
}
