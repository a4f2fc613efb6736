package interrupt

import "time"

// Kind names a cause of DESIGN §2.
type Kind uint8

const (
	// None: nothing is wrong.
	None Kind = iota
	// ConnectionReset: read error, RST, unexpected EOF in a framed body, RST_STREAM.
	ConnectionReset
	// TruncatedEOF: the body ended politely before the dialect's semantic end.
	TruncatedEOF
	// IdleStall: no byte, or no useful progress, for longer than allowed.
	IdleStall
	// GoAway: HTTP/2 GOAWAY or REFUSED_STREAM ended the stream.
	GoAway
	// Provider5xxMidStream: an error reported inside a 200 stream.
	Provider5xxMidStream
	// FirstTokenTimeout: no headers, or no visible content, in time.
	FirstTokenTimeout
	// Malformed: an event that is invalid and cannot be skipped.
	Malformed
	// OpenFailed: no connection, or it died before a response head.
	OpenFailed
	// BadStatus: a retryable status before the stream.
	BadStatus
	// EmptyAnswer: a 2xx without any event, or with a body that is no stream.
	EmptyAnswer
	// Permanent: the provider's final word; never retried on that target.
	Permanent
	// SeamFailed: a continuation did not continue (found by splice).
	SeamFailed
	// BreakerOpen: the target was not asked, since it has been failing.
	BreakerOpen
	// StormGuard: the target was not asked, since too many recoveries are under
	// way there already.
	StormGuard
	// ClientGone: the caller left. Nobody's fault.
	ClientGone
	// Canceled: we stopped it ourselves (shutdown, fence lost).
	Canceled
)

var kindNames = [...]string{
	"none", "connection_reset", "truncated_eof", "idle_stall", "go_away", "provider_5xx_mid_stream",
	"first_token_timeout", "malformed", "open_failed", "bad_status", "empty_answer", "permanent", "seam_failed", "breaker_open", "storm_guard", "client_gone", "canceled",
}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Cause is what interrupted an attempt, and what is known about repeating it.
type Cause struct {
	Kind Kind
	// Status is the HTTP status the fault has or stands for; 0 if none.
	Status int
	// NotSent: the provider certainly did not process the request, so that
	// repeating it repeats no effect.
	NotSent bool
	// RetryAfter is the provider's hint; 0: none. Never negative.
	RetryAfter time.Duration
	// RejectsPrefill: a 4xx that means "this target takes no trailing
	// assistant turn" (WIRE 2.1); the next manner may work.
	RejectsPrefill bool
	// ContextOverflow: the prompt does not fit this model.
	ContextOverflow bool
	// Slow: text flows, but less of it than the route wants (IdleStall). What is
	// that slow stays so: another target is the better choice.
	Slow bool
	// Lasting: nothing but somebody's hand changes it (a certificate that does not
	// verify), so that asking the same target again comes to the same.
	Lasting bool
	// Filtered: the content was refused as content; no other target is asked to
	// take it.
	Filtered bool
	// Type, Code, Message are the provider's own words, if any. Message is
	// bounded to 1 KiB.
	Type, Code, Message string
}

// Transient reports whether trying again can help.
func (c Cause) Transient() bool {
	switch c.Kind {
	case None, Permanent, ClientGone, Canceled:
		return false
	}
	return true
}

// NotAsked reports whether this house held the request back, so that no provider
// has heard of it.
func (c Cause) NotAsked() bool { return c.Kind == BreakerOpen || c.Kind == StormGuard }

// Damning reports whether the cause speaks against the target itself. That a client
// left or was wrong, that a continuation did not fit, that we stopped: none of it is
// the target's doing. Nor is a limit that it enforces (429).
func (c Cause) Damning() bool {
	return c.Blame() == Provider && !c.NotAsked() && c.Kind != SeamFailed && c.Status/100 != 4
}

// Blame says whose fault an outcome was (DESIGN §1.7).
type Blame uint8

const (
	// Nobody: no fault.
	Nobody Blame = iota
	// Client left, or read too slowly.
	Client
	// Us: shutdown, a fence, a bug.
	Us
	// Provider failed.
	Provider
	// Request: the provider rightly refused it.
	Request
)

// Blame returns whose fault the cause is.
func (c Cause) Blame() Blame {
	switch c.Kind {
	case None:
		return Nobody
	case ClientGone:
		return Client
	case Canceled:
		return Us
	case Permanent:
		return Request
	}
	return Provider
}

// Ended is how an attempt's bytes ended, told by the transport in its own words.
type Ended struct {
	How Ending
	// NotSent: the request certainly was not processed.
	NotSent bool
	Detail  string // one line, no credentials
	// After is when asking again may help, from now (Barred); 0: nobody knows.
	After time.Duration
}

// Ending is the transport's view of an end.
type Ending uint8

const (
	// EOF: the body was framed complete, or close-delimited and closed.
	EOF Ending = iota
	// Reset: RST, RST_STREAM, read error.
	Reset
	// Short: EOF inside a framed body.
	Short
	// GoneAway: GOAWAY or REFUSED_STREAM.
	GoneAway
	// NoConnection: dial or TLS failed, or no response head came.
	NoConnection
	// Untrusted: nor was there a connection, since the certificate of who answered
	// does not verify.
	Untrusted
	// HeadTimeout: no response head in time.
	HeadTimeout
	// Garbled: the framing was invalid.
	Garbled
	// Barred: a breaker did not let the request out.
	Barred
	// Crowded: nor did the guard against storms of recoveries.
	Crowded
)

// FromEnd returns the cause of an end that came before the semantic end.
func FromEnd(e Ended) Cause {
	c := Cause{NotSent: e.NotSent, Message: e.Detail}
	switch e.How {
	case EOF:
		c.Kind = TruncatedEOF
	case Reset, Short, Garbled:
		c.Kind = ConnectionReset
	case GoneAway:
		c.Kind = GoAway
	case NoConnection:
		c.Kind = OpenFailed
	case Untrusted:
		c.Kind, c.Lasting = OpenFailed, true
	case HeadTimeout:
		c.Kind = FirstTokenTimeout
	case Barred:
		c.Kind, c.Status, c.RetryAfter = BreakerOpen, 503, e.After
	case Crowded:
		c.Kind, c.Status = StormGuard, 503
	default:
		c.Kind = ConnectionReset
	}
	return c
}
