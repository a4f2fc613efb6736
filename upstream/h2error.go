package upstream

import (
	"errors"
	"net"
	"strings"

	"golang.org/x/net/http2"
)

// h2Error classifies what the library reports of a stream of cc, before or behind the head.
func h2Error(err error, cc *http2.ClientConn, op string, s Safety) *Error {
	e := &Error{Op: op, Safety: s, Kind: kindOf(err), Err: err}
	var (
		se http2.StreamError
		ga http2.GoAwayError
		ce http2.ConnectionError
	)
	switch {
	case errors.As(err, &se):
		e.Kind, e.Code = StreamReset, int(se.Code)
		if se.Cause != nil && se.Cause.Error() != "received from peer" {
			e.Kind = Protocol // the library reset the stream, for what the peer sent on it
			if strings.Contains(se.Cause.Error(), "header list larger") {
				e.Kind = TooLarge
			}
		}
		return e
	case errors.As(err, &ga):
		e.Kind, e.Code = GoAway, int(ga.ErrCode)
	case errors.As(err, &ce):
		e.Kind, e.Code = Protocol, int(ce)
	default:
		h2Text(e)
	}
	if st := cc.State(); (st.Closed || st.Closing) && !errors.Is(err, errRetryWish) && !errors.Is(err, net.ErrClosed) {
		e.Conn = cc
	}
	return e
}

// h2Text reads what the library tells in words alone. Each line is pinned by a test that provokes it, so that an update of the library
// which rewords one fails there.
func h2Text(e *Error) {
	const goAwayOnFirst = "http2: Transport received GOAWAY from server ErrCode:"
	switch text := e.Err.Error(); {
	case strings.HasPrefix(text, goAwayOnFirst):
		// GOAWAY with an error and a last stream id below our stream, the first of its connection: not processed like any other above
		// it (RFC 9113, section 6.8), only that the library would not try again.
		e.Kind, e.Code = GoAway, errCode(strings.TrimPrefix(text, goAwayOnFirst))
		if e.Op == OpHead {
			e.Kind, e.Safety = NotProcessed, NotSent
		}
	case strings.Contains(text, "graceful shutdown GOAWAY"): // behind the head; before it, it is a wish to repeat
		e.Kind = GoAway
	case strings.Contains(text, "client connection lost"): // a PING without an answer
		e.Kind = Timeout
	case strings.Contains(text, "could not be established"): // it died before its first stream
		e.Kind, e.Safety = StaleConn, NotSent
	case strings.Contains(text, "more than declared Content-Length"):
		e.Kind = Protocol
	}
}

// errCode is the number behind the library's name of an error code.
func errCode(name string) int {
	for c := http2.ErrCodeNo; c <= http2.ErrCodeHTTP11Required; c++ {
		if c.String() == name {
			return int(c)
		}
	}
	return int(http2.ErrCodeInternal)
}
