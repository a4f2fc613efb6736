package faultinject

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Status answers an error in place of the stream, in the dialect's shape
// (FIELD-REPORTS G5, G6).
type Status struct {
	Code        int
	RetryAfter  int           // seconds; with HasRetry
	HasRetry    bool          // Retry-After in seconds
	RetryMs     int           // retry-after-ms
	RetryDate   time.Duration // Retry-After as a date this far ahead
	ShouldRetry string        // x-should-retry: true or false
}

// Next implements Fault.
func (f Status) Next(p Position, _ []byte) Action {
	if p.Phase != PhaseOpen {
		return Action{}
	}
	r := statusRefusal(p.Dialect, f.Code)
	h := r.head(p.Dialect)
	if f.HasRetry {
		h.Set("Retry-After", strconv.Itoa(f.RetryAfter))
	}
	if f.RetryMs > 0 {
		h.Set("Retry-After-Ms", strconv.Itoa(f.RetryMs))
	}
	if f.ShouldRetry != "" {
		h.Set("X-Should-Retry", f.ShouldRetry)
	}
	return Action{Reply: &Reply{Status: f.Code, Header: h, Body: r.body(p.Dialect, "req_"+p.ID), RetryAt: f.RetryDate}}
}

// parseStatus reads "status CODE [retry-after SECONDS] [retry-after date
// DURATION] [retry-after-ms MS] [should-retry true|false]".
func parseStatus(w *words) (Fault, error) {
	f := Status{Code: w.number(0)}
	if f.Code < 200 || f.Code > 599 {
		return nil, fmt.Errorf("status needs a code from 200 to 599, such as status 529")
	}
	for {
		switch {
		case w.take("retry-after"):
			if w.take("date") {
				f.RetryDate = w.duration(time.Second)
			} else {
				f.RetryAfter, f.HasRetry = w.number(0), true
			}
		case w.take("retry-after-ms"):
			f.RetryMs = w.number(0)
		case w.take("should-retry"):
			f.ShouldRetry = w.next()
		default:
			return f, nil
		}
	}
}

// statusRefusal is the error a provider sends with a status.
func statusRefusal(d Dialect, code int) *Refusal {
	k := errorKind{status: code, messages: "api_error", chat: "server_error", text: http.StatusText(code)}
	for _, e := range errorKinds {
		if e.status == code {
			k = e
			break
		}
	}
	if code >= 400 && code < 500 && k.messages == "api_error" {
		k.messages, k.chat = "invalid_request_error", "invalid_request_error"
	}
	r := d.speaker().failure(k)
	r.Status = code
	return r
}
