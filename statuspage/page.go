package statuspage

import (
	"embed"
	"encoding/json"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"time"
)

//go:embed page
var files embed.FS

// Page serves the page and what it reads.
type Page struct {
	// Board has the streams.
	Board *Board
	// Status is told as it is, under "status": the numbers of /status.json.
	Status func() any
	// Runs and Run answer /api/runs and /api/runs/{key}; nil: no ledger is kept.
	Runs, Run http.HandlerFunc
	// Epoch tells this process from the one before.
	Epoch time.Time
}

// Routes adds to mux:
//
//	GET /                  to the page
//	GET /status            the page
//	GET /status/{file}     its parts
//	GET /api/status        what it shows; ?after= a revision of the feed, ?from= Unix
//	                       seconds of the history: only what is new since
//	GET /api/runs          the runs last written
//	GET /api/runs/{key}    one of them, and what recovery would do
//
// guard stands before everything that tells something.
func (p *Page) Routes(mux *http.ServeMux, guard func(http.HandlerFunc) http.HandlerFunc) {
	mux.HandleFunc("GET /{$}", strict(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/status", http.StatusFound) }))
	mux.HandleFunc("GET /status", strict(file("index.html")))
	parts, err := fs.ReadDir(files, "page")
	if err != nil {
		panic("BUG: statuspage: " + err.Error())
	}
	for _, f := range parts {
		if f.Name() != "index.html" {
			mux.HandleFunc("GET /status/"+f.Name(), strict(file(f.Name())))
		}
	}
	mux.HandleFunc("GET /api/status", strict(own(guard(p.status))))
	if p.Runs != nil {
		mux.HandleFunc("GET /api/runs", strict(own(guard(p.Runs))))
		mux.HandleFunc("GET /api/runs/{key}", strict(own(guard(p.Run))))
	}
}

// policy lets a browser load from here only, run nothing that is written into the
// document, and send nothing anywhere.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// strict sets what keeps other sites out.
func strict(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next(w, r)
	}
}

// own refuses what a browser asks on behalf of another site. Other clients do not
// say for whom they ask.
func own(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Sec-Fetch-Site") {
		case "", "same-origin", "none":
			next(w, r)
		default:
			http.Error(w, "this is not for other sites", http.StatusForbidden)
		}
	}
}

// kinds are the media types of the page's parts. The system's own table is not asked:
// with nosniff a wrong one would keep the page from working.
var kinds = map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}

func file(name string) http.HandlerFunc {
	body, err := files.ReadFile("page/" + name)
	kind := kinds[path.Ext(name)]
	if err != nil || kind == "" {
		panic("BUG: statuspage: a part that cannot be served: " + name)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(body) // the reader left
	}
}

// told is the body of /api/status.
type told struct {
	Epoch      string     `json:"epoch"`
	Now        time.Time  `json:"now"`
	Status     any        `json:"status"`
	Totals     Totals     `json:"totals"`
	Live       []Live     `json:"live"`
	LiveAll    int        `json:"live_all"`
	Rev        int64      `json:"rev"`
	Recoveries []Recovery `json:"recoveries"` // changed since, the oldest first
	Tick       int        `json:"tick_seconds"`
	History    []Tick     `json:"history"`
	Ledger     bool       `json:"ledger"`
}

func (p *Page) status(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64) // nonsense: all of it
	from, _ := strconv.ParseInt(r.URL.Query().Get("from"), 10, 64)
	t := p.Board.tell(after, from)
	t.Epoch = strconv.FormatInt(p.Epoch.UnixNano(), 36)
	t.Ledger = p.Runs != nil
	if p.Status != nil {
		t.Status = p.Status()
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(t) // the reader left
}

// tell is the board as it is now.
func (b *Board) tell(after, from int64) told {
	now := b.clock()
	b.mu.Lock()
	t := b.tellLocked(now, after, from)
	b.mu.Unlock()
	t.LiveAll = len(t.Live)
	t.Live = telling(t.Live) // thousands take a while, for which no stream waits
	return t
}

// tellLocked copies. mu is held.
func (b *Board) tellLocked(now time.Time, after, from int64) told {
	b.history.at(now, len(b.live))
	t := told{Now: now, Totals: b.totals, Rev: b.rev, Tick: int(tick / time.Second), Live: make([]Live, 0, len(b.live)), Recoveries: []Recovery{}}
	for w := range b.live {
		t.Live = append(t.Live, w.now)
	}
	for _, r := range b.feed {
		if r.Rev > after {
			t.Recoveries = append(t.Recoveries, *r)
		}
	}
	t.History = append([]Tick{}, b.history.since(from)...)
	return t
}
