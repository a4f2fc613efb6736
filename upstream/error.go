package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Safety says what is known about the provider's side of a failed attempt, and so what may be repeated.
type Safety uint8

// The zero value is the cautious one.
const (
	Sent    Safety = iota // some of the request left and no final response head came back: the provider may have acted, and billed
	NotSent               // the provider has not acted: nothing left, or the protocol proves that it was not processed
	Partial               // a response head arrived; its body did not end
)

func (s Safety) String() string {
	switch s {
	case NotSent:
		return "not sent"
	case Partial:
		return "partial"
	default:
		return "sent"
	}
}

// Kind names how an attempt failed. The names are stable: they appear in metrics.
type Kind uint8

// The kinds of failure. Op tells the phase in which it happened.
const (
	Broken       Kind = iota // a network failure of no better known kind
	Invalid                  // the request or target cannot be put on the wire as it is
	Resolve                  // the provider's name does not resolve
	Refused                  // nobody listens
	Unreachable              // no route to the host or network
	Timeout                  // the context's or the dialler's deadline passed, or the peer stopped acknowledging
	TLS                      // the handshake failed, the peer's certificate apart
	Untrusted                // the certificate of the peer, or of an https forward proxy, does not verify
	Proxy                    // the forward proxy refused or failed
	Reset                    // TCP RST, or a write to a closed connection
	Truncated                // the connection or compressed body ended before its framing said so
	StaleConn                // a reused connection died before any byte of the response: the keep-alive race
	GoAway                   // HTTP/2 GOAWAY ended the stream after it may have been processed
	StreamReset              // HTTP/2 RST_STREAM; Code says why
	NotProcessed             // HTTP/2 REFUSED_STREAM, or a GOAWAY with a last stream id below ours
	Canceled                 // we did it: the context of Open was cancelled, or Close was called
	Protocol                 // the peer broke HTTP
	TooLarge                 // the response head exceeds Config.MaxHeaderBytes
	Source                   // Request.BodyStream failed or ended early
	Corrupt                  // the compressed body does not decode
)

var kindNames = [...]string{
	Broken: "broken", Invalid: "invalid", Resolve: "resolve", Refused: "refused", Unreachable: "unreachable", Timeout: "timeout",
	TLS: "tls", Untrusted: "untrusted", Proxy: "proxy", Reset: "reset", Truncated: "truncated", StaleConn: "stale_conn", GoAway: "goaway",
	StreamReset: "stream_reset", NotProcessed: "not_processed", Canceled: "canceled", Protocol: "protocol", TooLarge: "too_large",
	Source: "source", Corrupt: "corrupt",
}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// The phases of an attempt, as Error.Op.
const (
	OpRequest = "request" // before anything was dialled
	OpDial    = "dial"    // resolving and connecting, the forward proxy included
	OpTLS     = "tls"     // the handshake
	OpWrite   = "write"   // sending the request
	OpHead    = "head"    // waiting for the response head
	OpBody    = "body"    // reading the response body
)

// Error is the only error of Open and, beside io.EOF and ErrWoken, of Next.
type Error struct {
	Target string // Target.Name
	Op     string // the phase: OpDial … OpBody
	Safety Safety
	Kind   Kind
	Code   int   // HTTP/2 error code (RFC 9113, section 7) for StreamReset, GoAway, NotProcessed and Protocol; otherwise 0
	Err    error // the cause; for a cancelled Open the context's cause
	// Conn is the HTTP/2 connection that died, with all its streams; it can be compared.
	// nil: it is about this request alone.
	Conn any
}

// Error is one line. It names neither path nor query, and no credential.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("upstream")
	if e.Target != "" {
		b.WriteString(" " + e.Target)
	}
	b.WriteString(": " + e.Op)
	kind := e.Kind.String()
	if kind != e.Op {
		b.WriteString(": " + kind)
	}
	if e.Kind == StreamReset || e.Kind == GoAway || e.Code != 0 {
		b.WriteString(" (code " + strconv.Itoa(e.Code) + ")")
	}
	if e.Err != nil {
		b.WriteString(": " + strings.TrimPrefix(oneLine.Replace(e.Err.Error()), kind+": "))
	}
	b.WriteString(" [" + e.Safety.String() + "]")
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

// kindOf classifies an error of the network, of TLS or of a dial.
func kindOf(err error) Kind {
	var (
		dns  *net.DNSError
		cert *tls.CertificateVerificationError
		rec  tls.RecordHeaderError
		al   tls.AlertError
		host x509.HostnameError
		ne   net.Error
	)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Truncated
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNABORTED):
		return Reset
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return Unreachable
	case errors.Is(err, net.ErrClosed), errors.Is(err, context.Canceled):
		return Canceled
	case errors.As(err, &cert), errors.As(err, &host):
		return Untrusted
	case errors.As(err, &rec), errors.As(err, &al):
		return TLS
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return Timeout
	case errors.As(err, &dns):
		if dns.IsTimeout {
			return Timeout
		}
		return Resolve
	case errors.As(err, &ne) && ne.Timeout():
		return Timeout
	}
	return Broken
}

// ended describes an attempt whose context ended: by the caller's hand, or by its deadline.
func ended(ctx context.Context, op string, s Safety) *Error {
	k := Canceled
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		k = Timeout
	}
	return &Error{Op: op, Safety: s, Kind: k, Err: context.Cause(ctx)}
}
