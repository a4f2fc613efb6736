package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/unbroken-llm/unbroken/bench/gauge"
)

// turnEnd is how one turn went, as its agent saw it.
type turnEnd struct {
	Began, Ended time.Time
	Seen         time.Time // when its first words came; zero: none did
	Tries        int
	Err          string // why it is not whole; empty: it is, word for word
}

const (
	// sdkRetries and the rest are what the official SDKs do by themselves (WIRE 4).
	sdkRetries  = 2
	sdkBackoff  = 500 * time.Millisecond
	sdkPatience = 60 * time.Second // a longer Retry-After is not believed
)

// agent asks turn after turn, until ctx ends.
type agent struct {
	n     int
	base  string
	want  string // what a whole turn says
	think time.Duration
	http  *http.Client
}

func (a *agent) run(ctx context.Context, live context.Context, ends chan<- turnEnd) {
	for i := 0; ctx.Err() == nil; i++ {
		e := turnEnd{Began: time.Now()}
		err := a.turn(live, i, &e)
		e.Ended = time.Now()
		if err != nil {
			e.Err = err.Error()
		}
		ends <- e
		nap(ctx, time.Duration((0.5+rand.Float64())*float64(a.think)))
	}
}

// turn asks for one answer, as an SDK does.
func (a *agent) turn(ctx context.Context, i int, e *turnEnd) error {
	ask := fmt.Sprintf(`{"model":"gpt-4.1","stream":true,"messages":[{"role":"user","content":"Turn %d of agent %d"}]}`, i, a.n)
	for e.Tries = 1; ; e.Tries++ {
		wait, err := a.try(ctx, ask, e)
		if err == nil || wait < 0 || e.Tries > sdkRetries || ctx.Err() != nil {
			return err
		}
		if wait == 0 || wait > sdkPatience {
			wait = time.Duration((0.75 + rand.Float64()/4) * float64(sdkBackoff<<(e.Tries-1)))
		}
		nap(ctx, wait)
	}
}

// try makes one request. wait is when to make another: negative for never, 0 if nobody
// said.
func (a *agent) try(ctx context.Context, ask string, e *turnEnd) (wait time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.base+"/v1/chat/completions", strings.NewReader(ask))
	if err != nil {
		return -1, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", fmt.Sprintf("Bearer agent-%d", a.n))
	res, err := a.http.Do(req)
	if err != nil {
		return 0, fmt.Errorf("no answer: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		_, _ = io.Copy(io.Discard, res.Body)
		if n, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil {
			wait = time.Duration(n) * time.Second
		}
		if res.Header.Get("x-should-retry") == "false" || res.StatusCode < 500 && res.StatusCode != http.StatusTooManyRequests {
			wait = -1
		}
		return wait, fmt.Errorf("status %d", res.StatusCode)
	}
	var got strings.Builder
	err = gauge.Chat.Listen(res.Body, func(at time.Time, text string) {
		if e.Seen.IsZero() {
			e.Seen = at
		}
		got.WriteString(text)
	})
	switch {
	case err != nil:
		return -1, err // a stream that broke is not retried by any SDK
	case got.String() != a.want:
		return -1, errors.New("the answer is not what the provider says")
	}
	return 0, nil
}

func nap(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
