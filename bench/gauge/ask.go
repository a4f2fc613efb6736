package gauge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// asker asks one server for streams, as an unmodified SDK does, and notes when it got what.
// It never asks again: what breaks stays broken.
type asker struct {
	wire   Wire
	url    string
	key    string
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
	// What is asked is who was named, and nobody else gets the key.
	here := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &asker{wire: w, url: at, key: key, header: w.header(key), http: &http.Client{Transport: pool, CheckRedirect: here}}, nil
}

// named is where it asks, as it may be shown: without what may be a secret.
func (a *asker) named() string {
	u, err := url.Parse(a.url)
	if err != nil {
		return a.wire.path()
	}
	u.User, u.RawQuery = nil, ""
	return a.hush(u.String())
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
	err := a.read(ctx, body, more, t)
	t.ended = time.Now()
	if err != nil {
		t.err = errors.New(a.hush(err.Error()))
	}
	return t
}

// hush takes the key out of what is shown: a server may say it back.
func (a *asker) hush(s string) string {
	if a.key == "" {
		return s
	}
	return strings.ReplaceAll(s, a.key, "[key]")
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
		var u *url.Error
		if errors.As(err, &u) {
			return u.Err // the URL may hold a key too
		}
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return refusal(res, a.hush)
	}
	err = a.wire.Listen(res.Body, func(at time.Time, text string) {
		t.text.WriteString(text)
		t.beats = append(t.beats, beat{at, t.text.Len()})
	})
	var c complaint
	switch {
	case errors.As(err, &c):
		return complaint(a.hush(string(c)))
	case errors.Is(err, errNoEvent):
		return fmt.Errorf("%w, whose Content-Type is %.100q", err, res.Header.Get("Content-Type"))
	}
	return err
}
