package gauge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/unbroken-llm/unbroken/sse"
)

// asker asks one server for streams, as an unmodified SDK does, and notes when it got what.
// It never asks again: what breaks stays broken.
type asker struct {
	wire   Wire
	url    string
	header http.Header
	http   *http.Client
}

func newAsker(w Wire, base, key string, clients int) (*asker, error) {
	at, err := w.endpoint(base)
	if err != nil {
		return nil, err
	}
	pool := http.DefaultTransport.(*http.Transport).Clone()
	pool.MaxIdleConnsPerHost, pool.DisableCompression = clients, true
	return &asker{wire: w, url: at, header: w.header(key), http: &http.Client{Transport: pool}}, nil
}

func (a *asker) close() { a.http.CloseIdleConnections() }

// told is one answer as its client saw it.
type told struct {
	began, ended time.Time
	beats        []beat
	text         strings.Builder
	err          error // why it is not whole; nil: its terminal came
}

// beat is a moment at which text came.
type beat struct {
	at   time.Time
	upto int // bytes of text by then
}

// first is how long the first text took; false: there was none.
func (t *told) first() (time.Duration, bool) {
	if len(t.beats) == 0 {
		return 0, false
	}
	return t.beats[0].at.Sub(t.began), true
}

// beyond is the last beat up to n bytes of text, and the first beyond them; false: one of them
// is missing.
func (t *told) beyond(n int) (last, next time.Time, ok bool) {
	for i, b := range t.beats {
		if b.upto > n {
			return last, b.at, i > 0
		}
		last = b.at
	}
	return last, next, false
}

// ask makes one request, with more headers than the usual.
func (a *asker) ask(ctx context.Context, body []byte, more map[string]string) *told {
	t := &told{began: time.Now()}
	t.err = a.read(ctx, body, more, t)
	t.ended = time.Now()
	return t
}

func (a *asker) read(ctx context.Context, body []byte, more map[string]string, t *told) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	q.Header = a.header.Clone()
	for name, value := range more {
		q.Header.Set(name, value)
	}
	res, err := a.http.Do(q)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(io.LimitReader(res.Body, 200))
		return fmt.Errorf("status %d: %q", res.StatusCode, bytes.TrimSpace(b))
	}
	var scan sse.Scanner
	buf, whole := make([]byte, 16<<10), false
	for {
		n, err := res.Body.Read(buf)
		at := time.Now()
		scan.Push(buf[:n])
		for e, ok := scan.Next(); ok; e, ok = scan.Next() {
			if len(e.Data) == 0 {
				continue
			}
			text, end, fault := a.wire.said(e.Data)
			if fault != nil {
				return fault
			}
			whole = whole || end
			if text != "" {
				t.text.WriteString(text)
				t.beats = append(t.beats, beat{at, t.text.Len()})
			}
		}
		switch {
		case errors.Is(err, io.EOF) && whole:
			return scan.Err()
		case errors.Is(err, io.EOF):
			return errors.New("the stream ended early")
		case err != nil:
			return fmt.Errorf("the stream broke: %w", err)
		}
	}
}
