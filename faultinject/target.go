package faultinject

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// targetClient talks to a real provider: no deadline, no redirects with
// credentials, no decompression behind our back.
func targetClient() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableCompression: true, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// hopHeaders are not relayed (RFC 9110 §7.6.1); the X-Fault headers are ours.
var hopHeaders = []string{"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Content-Length", "Host", "Accept-Encoding", HeaderScenario, HeaderTurn, HeaderScript}

// relay passes a request on to the target and applies the script's faults to
// its answer.
func (s *Server) relay(ctx context.Context, id int, in received, w wire) Ending {
	script, err := s.script(in.header)
	if err != nil {
		return s.refuse(id, Chat, invalid("%s: %v", HeaderScript, err), w)
	}
	d := s.targetDrive(id, in, w, script)
	if r := unmet(d.faults, w.transport(), d.pos.Framing); r != nil {
		return s.refuse(id, d.pos.Dialect, r, w)
	}
	end := d.open()
	if end == "" {
		end = s.relayBody(ctx, d, in)
	}
	if d.finished {
		s.turns.done(d.turn)
	}
	s.settle(id, d)
	return end
}

// targetDrive prepares the drive of a relayed request. Attempts are counted as
// for the provider's own answers, but a continuation is known by its wording
// alone, since nobody knows what the target meant to say.
func (s *Server) targetDrive(id int, in received, w wire, script Script) *drive {
	d := &drive{w: w, closed: s.closing, pos: Position{Seed: s.cfg.Seed, ID: label(s.cfg.Seed, string(in.body))}}
	sp := speakerFor(in)
	if sp == nil {
		return d
	}
	d.pos.Dialect, d.pos.Framing = sp.dialect(), sp.dialect().framing(Options{})
	p, err := sp.prompt(s, in)
	if err != nil || len(p.Turns) == 0 {
		return d // the target will say what is wrong with it
	}
	manner, partial, base := mannerOf(p, true)
	if manner == Asked && !goOn.MatchString(p.Turns[len(p.Turns)-1].Text) {
		manner, base = Fresh, p
	}
	key, turnNo := turnKey(in.header.Get(HeaderTurn), base)
	attempt := s.turns.count(key)
	tr := script.For(Query{Attempt: attempt, Turn: turnNo, Model: p.Model})
	d.turn = key
	d.faults, d.pos.Model, d.pace = tr.Faults, p.Model, s.cfg.Pace
	if tr.Pace != nil {
		d.pace = *tr.Pace
	}
	s.log.update(id, func(x *Exchange) {
		x.Dialect, x.Model, x.Turn, x.TurnNo, x.Attempt, x.Fault = d.pos.Dialect, p.Model, key, turnNo, attempt, tr.Text
		x.Continuation = Continuation{Manner: manner, Said: partial.Text}
	})
	return d
}

// count counts one more attempt of a turn.
func (ts *turns) count(key string) int {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	st := ts.byID[key]
	if st == nil {
		st = &turnState{}
		ts.byID[key] = st
	}
	st.attempts++
	return st.attempts
}

func (s *Server) relayBody(ctx context.Context, d *drive, in received) Ending {
	res, err := s.askTarget(ctx, in)
	if err != nil {
		if ctx.Err() != nil {
			return ClientClosed
		}
		r := &Refusal{Status: http.StatusBadGateway, Type: "api_error", Message: "the target cannot be reached: " + plainError(err)}
		return d.reply(&Reply{Status: r.Status, Header: r.head(d.pos.Dialect), Body: r.body(d.pos.Dialect, "")})
	}
	defer res.Body.Close()
	h := res.Header.Clone()
	for _, name := range hopHeaders {
		h.Del(name)
	}
	if end := d.head(res.StatusCode, h); end != "" {
		return end
	}
	if kind := res.Header.Get("Content-Type"); strings.HasPrefix(kind, "text/event-stream") || kind == FrameBinary.contentType() {
		return d.copyEvents(res.Body)
	}
	return d.copyPlain(res.Body)
}

func (s *Server) askTarget(ctx context.Context, in received) (*http.Response, error) {
	u, err := url.Parse(strings.TrimSuffix(s.cfg.Target.String(), "/") + in.path)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, in.method, u.String(), bytes.NewReader(in.body))
	if err != nil {
		return nil, err
	}
	req.GetBody = nil // no hidden retries
	req.Header = in.header.Clone()
	for _, name := range hopHeaders {
		req.Header.Del(name)
	}
	req.Header.Set("Accept-Encoding", "identity")
	return s.client.Do(req)
}

// plainError leaves out the URL, which may carry a key.
func plainError(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err.Error()
	}
	return err.Error()
}

// copyPlain relays a body that is no stream of events.
func (d *drive) copyPlain(body io.Reader) Ending {
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		if n > 0 {
			if end := d.write(buf[:n]); end != "" {
				return end
			}
		}
		if end, over := d.targetEnded(err); over {
			return end
		}
	}
}

// copyEvents relays a stream event by event, each one as the target sent it.
func (d *drive) copyEvents(body io.Reader) Ending {
	var pending []byte
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		pending = append(pending, buf[:n]...)
		for {
			size := d.pos.Framing.eventLen(pending)
			if size == 0 {
				break
			}
			raw := bytes.Clone(pending[:size])
			pending = pending[size:]
			if d.pos.Framing != FrameBinary {
				d.pos.Framing = framingOf(raw)
			}
			if end := d.event(Event{d.pos.Framing.classify(raw), raw}); end != "" {
				return end
			}
		}
		if err != nil && len(pending) > 0 {
			if end := d.write(pending); end != "" {
				return end
			}
		}
		if end, over := d.targetEnded(err); over {
			return end
		}
	}
}

// targetEnded ends the response the way the target's ended.
func (d *drive) targetEnded(err error) (Ending, bool) {
	switch {
	case err == nil:
		return "", false
	case errors.Is(err, io.EOF):
		return d.finish(), true
	}
	select {
	case <-d.w.gone():
		return ClientClosed, true
	default:
	}
	d.w.end(Step{End: EndFIN})
	return CutFIN, true
}
