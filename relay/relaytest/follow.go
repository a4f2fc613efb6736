package relaytest

import (
	"fmt"

	"github.com/unbroken-llm/unbroken/relay"
)

// Follow shows a turn to a second client while its log grows to what is given, by
// piece bytes at a time. If the log is not that of a whole turn, the connection that
// wrote it is lost then, and the turn is carried on.
func (w World) Follow(body, log []byte, piece int, p Provider) (Result, error) {
	req, err := w.Dialect.Parse(body)
	if err != nil {
		return Result{}, err
	}
	now := epoch
	f := relay.Follow(w.Config, w.Dialect, req, now)
	r := run{w: w, p: p, first: body, start: now}
	r.res.Log = append(r.res.Log, log...)
	for at := 0; at <= len(log); at += piece {
		end := min(len(log), at+piece)
		if err := f.Read(log[at:end], end == len(log)); err != nil {
			return r.res, err
		}
		if f.Size() != int64(end) {
			r.law("%d bytes of the log are read, of %d", f.Size(), end)
		}
		for {
			fx := f.Next(now)
			if len(fx.Client) == 0 {
				break
			}
			r.perform(fx, now)
		}
		if end == len(log) {
			break
		}
	}
	if f.Done() {
		return r.res, nil
	}
	s, fx := f.Resume(now)
	return w.goOn(r, s, fx)
}

// goOn drives a stream to its end whose client has had something already.
func (w World) goOn(r run, s *relay.Stream, fx *relay.Effects) (Result, error) {
	log, head, body := r.res.Log, r.res.Head, r.res.Body
	if fx.Head != nil && head != nil {
		return r.res, fmt.Errorf("two response heads")
	}
	res, err := w.driveFrom(r, s, fx, false)
	if len(res.Log) < len(log) || len(res.Body) < len(body) {
		return res, fmt.Errorf("what was said is gone")
	}
	return res, err
}
