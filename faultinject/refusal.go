package faultinject

import (
	"fmt"
	"net/http"
)

// A Refusal is a request turned down before any answer, in the words of the
// provider. It is also used for the errors faults produce.
type Refusal struct {
	Status  int
	Type    string
	Code    string // OpenAI only; empty is null
	Param   string // OpenAI only; empty is null
	Message string
	Details string // Google only: a JSON array, empty without
	Array   bool   // Google only: the error is the one element of an array
}

func (r *Refusal) Error() string { return fmt.Sprintf("%d %s: %s", r.Status, r.Type, r.Message) }

func invalid(format string, args ...any) *Refusal {
	return &Refusal{Status: 400, Type: "invalid_request_error", Message: fmt.Sprintf(format, args...)}
}

func invalidParam(param, format string, args ...any) *Refusal {
	r := invalid(format, args...)
	r.Param = param
	return r
}

// body renders the refusal as the JSON body of its dialect.
func (r *Refusal) body(d Dialect, requestID string) []byte {
	return d.speaker().refuse(r, requestID)
}

// head returns the headers of a response with that body.
func (r *Refusal) head(d Dialect) http.Header {
	h := http.Header{}
	if more := d.speaker().traits().errorHead; more != nil {
		h = more(r)
	}
	h.Set("Content-Type", "application/json")
	return h
}

func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return quote(s)
}
