package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/filestore"
	"github.com/unbroken-llm/unbroken/ledger"
	"github.com/unbroken-llm/unbroken/redisstore"
	"github.com/unbroken-llm/unbroken/sealed"
	"github.com/unbroken-llm/unbroken/telemetry"
)

const (
	storeMemory = "memory"
	storeFile   = "file:"
)

// storeWords is what a store may be called, for those who called it otherwise.
const storeWords = "use memory, file:DIR, redis://…, rediss://…, redis+sentinel://… or redis+cluster://…"

// storeValue names a store.
type storeValue struct{ p *string }

func (v storeValue) set(text string) error {
	switch dir, isFile := strings.CutPrefix(text, storeFile); {
	case text == storeMemory:
	case isFile:
		if dir == "" {
			return fmt.Errorf("file: names no directory: write for instance file:/var/lib/unbroken")
		}
	case strings.Contains(text, "://"):
		if scheme, _, _ := strings.Cut(text, "://"); !strings.HasPrefix(scheme, "redis") {
			return fmt.Errorf("%s:// is no store: %s", scheme, storeWords)
		}
		if _, err := redisstore.ParseURL(text); err != nil {
			return err // it shows no password
		}
	case strings.Contains(text, "@"):
		return fmt.Errorf("is no store, and not shown, since it may hold a password: %s", storeWords)
	default:
		return fmt.Errorf("%q is no store: %s", text, storeWords)
	}
	*v.p = text
	return nil
}

// String shows no password.
func (v storeValue) String() string { return withoutPassword(*v.p) }

func withoutPassword(store string) string {
	scheme, rest, ok := strings.Cut(store, "://")
	if !ok {
		return store
	}
	rest, _, _ = strings.Cut(rest, "?") // passwords may be there too
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		rest = "***@" + rest[at+1:]
	}
	return scheme + "://" + rest
}

// keeping is the store that a process uses.
type keeping struct {
	checkpoint.Store // nil: the proxy's own memory
	runs             ledger.Store
	name             string
	health           func() storeHealth
	close            func()
}

// storeHealth is how a store is doing, as /status.json tells it.
type storeHealth struct {
	Store string `json:"store"`
	// Away: turns are not protected beyond this process until the store is back.
	// Streams go on.
	Away  bool       `json:"away"`
	Since *time.Time `json:"since,omitempty"`
	Error string     `json:"error,omitempty"`
	// BehindBytes of BehindTurns wait to be written, LagMS for how long.
	BehindBytes int64 `json:"behind_bytes"`
	BehindTurns int   `json:"behind_turns"`
	LagMS       int64 `json:"lag_ms"`
	Drops       int64 `json:"drops"`
	Fenced      int64 `json:"fenced"`
}

// measured is how a store is doing, for metrics.
func (h storeHealth) measured() telemetry.Store {
	return telemetry.Store{
		Away: h.Away, Lag: time.Duration(h.LagMS) * time.Millisecond, BehindBytes: h.BehindBytes, BehindTurns: h.BehindTurns,
		Drops: h.Drops, Fenced: h.Fenced,
	}
}

// storeClose bounds what a store may still write when the process ends.
const storeClose = 2 * time.Second

// openStore opens what was configured. A Redis that is away now is no error. With keys
// nothing of what was said is kept outside this process in clear.
func openStore(text string, keys sealed.Keys, log *slog.Logger) (*keeping, error) {
	k := &keeping{name: withoutPassword(text), close: func() {}}
	k.health = func() storeHealth { return storeHealth{Store: k.name} }
	if text == storeMemory {
		k.runs = ledger.NewMemory(ledger.MemoryConfig{Clock: time.Now})
		return k, nil
	}
	var seal ledger.Sealer
	closed := func(s sealed.Inner) checkpoint.Store { return s }
	if keys.Len() > 0 {
		seal, closed = keys, func(s sealed.Inner) checkpoint.Store { return sealed.New(s, keys) }
	}
	if dir, ok := strings.CutPrefix(text, storeFile); ok {
		s, err := filestore.Open(filestore.Config{Dir: dir, Seal: seal})
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		k.Store, k.runs, k.close = closed(s), s.Runs(), s.Close
		return k, nil
	}
	server, err := redisstore.ParseURL(text)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	s, err := redisstore.Open(redisstore.Config{Server: server, Seal: seal, Log: log})
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	k.Store, k.runs = closed(s), s.Runs()
	k.close = func() {
		ctx, cancel := context.WithTimeout(context.Background(), storeClose)
		defer cancel()
		s.Close(ctx)
	}
	k.health = func() storeHealth {
		st := s.Stats()
		h := storeHealth{
			Store: k.name, Away: st.Away, BehindBytes: st.Behind, BehindTurns: st.BehindTurns,
			LagMS: st.Lag.Milliseconds(), Drops: st.Drops, Fenced: st.Fenced,
		}
		if st.Away {
			h.Error = st.Error
			if !st.Since.IsZero() {
				h.Since = &st.Since
			}
		}
		return h
	}
	return k, nil
}

// line is how a store is doing, for people.
func (h storeHealth) line() string {
	switch {
	case h.Away && h.Since != nil:
		return fmt.Sprintf("store %s: away for %s (%s); streams go on, their turns are safe in this process only", h.Store, time.Since(*h.Since).Round(time.Second), h.Error)
	case h.Away:
		return fmt.Sprintf("store %s: away (%s); streams go on, their turns are safe in this process only", h.Store, h.Error)
	case h.BehindTurns > 0:
		return fmt.Sprintf("store %s: ok, %d bytes of %d turns to be written, the oldest for %d ms", h.Store, h.BehindBytes, h.BehindTurns, h.LagMS)
	}
	return fmt.Sprintf("store %s: ok", h.Store)
}
