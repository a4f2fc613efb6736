package interrupt

import (
	"strings"
	"time"

	"github.com/unbroken-llm/unbroken/turn"
)

// FromStatus returns the cause of a response that is no stream: its status, its
// headers by name (any case; nil if there are none) and its body or the head of it.
//
// First match wins:
//
//	known final word (quota, filter, overflow …)  Permanent, whatever the status
//	x-should-retry: false | true                  Permanent | BadStatus (4xx, 5xx)
//	424 for a 4xx that the model itself answered  Permanent
//	408 409 424 429 5xx                           BadStatus
//	2xx with an error object as its body          as [FromFault]
//	other 2xx                                     EmptyAnswer
//	anything else                                 Permanent
//
// The official SDKs let x-should-retry override the status both ways (WIRE §4),
// so a caller who talks to the provider directly would see the same retry. Only
// a word that says that this very request cannot work is stronger. A 3xx is
// permanent: a redirect is never followed with credentials (FIELD-REPORTS F5).
func FromStatus(status int, header func(name string) string, body []byte, now time.Time) Cause {
	if header == nil {
		header = func(string) string { return "" }
	}
	s := read(body)
	if status/100 == 2 {
		return fromAnswer(status, s)
	}
	c := Cause{
		Kind: Permanent, Status: status,
		RetryAfter: retryAfter(header, now),
		Type:       s.typ, Code: s.code, Message: s.message,
	}
	w := look(s.typ, s.code)
	c.RejectsPrefill = (status == 400 || status == 422) && says(s.message, prefillWords)
	c.ContextOverflow = w.class == overflow || refusal(status) && says(s.message, overflowWords)
	c.Filtered = w.class == filtered
	switch again := strings.ToLower(strings.TrimSpace(header("x-should-retry"))); {
	case w.class >= hard || c.ContextOverflow:
	case again == "false", status == 424 && refusal(s.status):
	case again == "true" && (status/100 == 4 || status/100 == 5), retryable(status):
		c.Kind = BadStatus
	}
	return c
}

// fromAnswer is a 2xx that is no stream. Its status says nothing about the
// fault, so it is not kept.
func fromAnswer(status int, s spoken) Cause {
	if s.found {
		return FromFault(turn.WireFault{Type: s.typ, Code: s.code, Message: s.message, Status: s.status})
	}
	return Cause{Kind: EmptyAnswer, Status: status, Message: s.message}
}

// retryable reports whether a status before the stream may be tried again
// (DESIGN §7). 424 is a generation that failed: Bedrock's ModelErrorException and
// ModelStreamErrorException ("Retry your request", API reference of ResponseStream),
// TGI's "generation error". 520-529 are a CDN's and 529 is Anthropic's "overloaded"; a 5xx of
// unknown meaning is still the provider's failure.
func retryable(status int) bool {
	switch status {
	case 408, 409, 424, 429:
		return true
	}
	return status/100 == 5
}

// refusal reports whether a status says that the request is at fault. A message
// about length under a 429 is a rate limit in tokens, not an overflow.
func refusal(status int) bool { return status/100 == 4 && !retryable(status) }

// FromFault returns the cause of an error inside a 200 stream. What its code
// means comes before what its type means, and both before its status. An error
// of unknown meaning is the provider's failure, since a request that got as far
// as a stream was accepted (FIELD-REPORTS E1).
func FromFault(f turn.WireFault) Cause {
	c := Cause{
		Kind: Provider5xxMidStream, Status: f.Status,
		Type: clip(f.Type, maxWord), Code: clip(f.Code, maxWord), Message: text(f.Message),
	}
	w := look(f.Type, f.Code)
	if c.Status == 0 {
		c.Status = number(f.Code) // OpenRouter: code 502; others spell it "502"
	}
	if c.Status == 0 {
		c.Status = w.status
	}
	judged := w.class
	if judged == strange && refusal(c.Status) {
		judged = refused
	}
	c.Filtered = judged == filtered
	c.ContextOverflow = judged == overflow || judged != passing && says(c.Message, overflowWords)
	if judged >= refused || c.ContextOverflow {
		c.Kind = Permanent
		c.RejectsPrefill = c.Status == 400 && says(c.Message, prefillWords)
	}
	return c
}
