package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/unbroken-llm/unbroken/telemetry"
	"github.com/unbroken-llm/unbroken/upstream"
)

// fixed reports whether a change of the field waits for the next start: sockets, the
// store, keys under which things were kept, and what is made once for the process.
func (f *field) fixed() bool {
	switch f.key {
	case "listen", "admin", "header_timeout", "max_header", "client_idle",
		"store", "seal_key", "scope_key", "ledger",
		"log_format", "otlp_endpoint", "otlp_protocol":
		return true
	}
	return false
}

// reloader puts a changed configuration in force while the process serves. All of it is
// read and checked before any of it counts; one with a problem changes nothing.
type reloader struct {
	// immutable
	h    *house
	read func() *loading // file, environment and flags, anew
	// started is what the process began with: what fixed settings are.
	started *loading

	// reloader only
	current *loading
	files   changes

	mu sync.Mutex
	st reloadState
}

// reloadState is how the configuration is doing, as /status.json tells it.
type reloadState struct {
	File   string    `json:"file,omitempty"`
	Loaded time.Time `json:"loaded"` // when what is in force was read
	// Accepted and Refused count reloads.
	Accepted int64 `json:"accepted"`
	Refused  int64 `json:"refused"`
	// Problems are those of the last reload, if it was refused, which it was at RefusedAt.
	Problems  []string   `json:"problems"`
	RefusedAt *time.Time `json:"refused_at,omitempty"`
	// Pending are settings whose change waits for a restart.
	Pending []string `json:"pending"`
}

// newReloader begins with what the process was started with.
func newReloader(h *house, l *loading, read func() *loading) *reloader {
	r := &reloader{h: h, read: read, started: l, current: l}
	r.st = reloadState{File: l.name, Loaded: time.Now(), Problems: []string{}, Pending: []string{}}
	r.files.read(l.files)
	return r
}

// start obeys signals and looks for changed files until stop is called.
func (r *reloader) start(signals <-chan os.Signal, ignore func()) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.files.follow(ctx, look, signals, r.reload)
	}()
	return func() {
		ignore()
		cancel()
		<-done
	}
}

// hangups are SIGHUPs that ask for a reload. Where nobody could have meant one, on a terminal
// and without a file to read again, the signal ends the process as it always does: its
// terminal is gone.
func hangups(env environment, l *loading) (signals <-chan os.Signal, ignore func()) {
	c := make(chan os.Signal, 1)
	if f, ok := env.err.(*os.File); ok && l.name == "" && term.IsTerminal(int(f.Fd())) {
		return c, func() {}
	}
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

func (r *reloader) state() reloadState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.st
}

func (r *reloader) measured() telemetry.Config {
	st := r.state()
	return telemetry.Config{Accepted: st.Accepted, Refused: st.Refused, Loaded: st.Loaded, Stale: st.RefusedAt != nil, Pending: len(st.Pending)}
}

// reload reads the configuration again, and puts it in force if it is good.
func (r *reloader) reload(why string) {
	files := r.files.which()
	r.files.begin()
	if piped(r.started.name) {
		r.refuse(why, problems{{origin{place: r.started.name}, "is a pipe, which says what it says once: start with --config and a file that can be read again"}})
		return
	}
	next := r.read()
	w := next.wire(io.Discard)
	r.files.read(next.files)
	log := r.h.log
	if len(next.problems) == 0 {
		if !sameDial(r.current, next) {
			w.proxy.Client = upstream.New(w.dial)
		}
		if err := r.h.srv.Reload(w.proxy); err != nil {
			next.problems = problems{{origin{place: next.name}, err.Error()}}
			if w.proxy.Client != nil {
				w.proxy.Client.Close()
			}
		}
	}
	if len(next.problems) > 0 {
		r.refuse(why, next.problems)
		return
	}
	if w.proxy.Client != nil {
		r.h.client = w.proxy.Client
	}
	r.h.adopt(next.settings, w)
	changed := differences(r.current, next)
	pending := r.pending(next)
	for _, key := range pending {
		log.Warn("a setting waits for the next start; until then it is what it was", "key", key, "at", next.origin(key).String())
	}
	r.current = next
	r.mu.Lock()
	r.st.Accepted++
	r.st.Loaded, r.st.Problems, r.st.RefusedAt, r.st.Pending = time.Now(), []string{}, nil, pending
	r.mu.Unlock()
	log.Info("the configuration is reloaded", "why", why, "changed", slices.DeleteFunc(changed, func(key string) bool { return slices.Contains(pending, key) }), "files", files)
	r.h.level.Set(next.settings.logLevel) // last: what was just said is to be heard
}

// refuse tells of a configuration that is not put in force.
func (r *reloader) refuse(why string, ps problems) {
	for _, p := range ps {
		r.h.log.Error("a problem of the configuration", p.attrs()...)
	}
	r.h.log.Error("the configuration is not reloaded; what was in force stays", "why", why, "problems", len(ps))
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.st.Refused++
	r.st.RefusedAt = &now
	r.st.Problems = make([]string, len(ps))
	for i, p := range ps {
		r.st.Problems[i] = p.String()
	}
}

// pending are the fixed settings that are not what the process was started with. A listener
// that speaks TLS takes other certificates, but no listener begins or ceases to.
func (r *reloader) pending(next *loading) []string {
	all := []string{}
	for i := range next.fields {
		f, was := &next.fields[i], &r.started.fields[i]
		if f.fixed() && !reflect.DeepEqual(plainly(f.value), plainly(was.value)) {
			all = append(all, f.key)
		}
	}
	if (next.settings.tlsCert == "") != (r.started.settings.tlsCert == "") {
		all = append(all, "tls_cert")
	}
	return all
}

// sameDial reports whether connections are made as they were.
func sameDial(a, b *loading) bool {
	for _, key := range []string{"dial_timeout", "proxy", "no_proxy"} {
		if !reflect.DeepEqual(plainly(a.field(key).value), plainly(b.field(key).value)) {
			return false
		}
	}
	return true
}

// differences are the keys whose values differ, sorted.
func differences(a, b *loading) []string {
	x, y := a.plain(), b.plain()
	all := []string{}
	for key, v := range y {
		if was, ok := x[key]; !ok || !reflect.DeepEqual(was, v) {
			all = append(all, key)
		}
		delete(x, key)
	}
	return slices.Sorted(slices.Values(slices.AppendSeq(all, maps.Keys(x))))
}

// plain is every value by its key, secrets as they are: to be compared, never shown.
func (l *loading) plain() map[string]any {
	all := map[string]any{}
	for i := range l.fields {
		if f := &l.fields[i]; f.key != keyUpstreams && f.key != keyRoutes {
			all[f.key] = plainly(f.value)
		}
	}
	for _, p := range l.settings.upstreams.list {
		name := keyUpstreams + "." + p.Name
		table := p.fields(nil)
		for i := range table {
			if v := plainly(table[i].value); v != "" && v != "false" {
				all[name+"."+table[i].key] = v
			}
		}
		for _, h := range p.Header {
			all[name+".headers."+h.Name] = h.Value
		}
	}
	for n, j := range l.settings.routes.list {
		all[fmt.Sprintf("%s[%d]", keyRoutes, n)] = j.Route
	}
	return all
}

// plainly is a value for comparisons.
func plainly(v value) any {
	switch v := v.(type) {
	case secret:
		return *v.p
	case sealKeys:
		return *v.p
	case storeValue:
		return *v.p
	case forwardProxy:
		return *v.p
	case upstreamURL:
		return *v.p
	}
	return v.String()
}

// certificate is that of the listener, which may be another one for each connection.
func (h *house) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	return h.cert.Load(), nil
}

// listenerTLS is how the listener speaks TLS.
func (h *house) listenerTLS() *tls.Config {
	return &tls.Config{GetCertificate: h.certificate, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}
}

// adopt takes over what is the house's own of new settings.
func (h *house) adopt(s *settings, w *wired) {
	h.drain.Store(int64(s.drain))
	if h.cert.Load() != nil && w.cert != nil {
		h.cert.Store(w.cert)
	}
	if h.admin != nil {
		h.admin.token.Store(&s.adminToken)
	}
}
