package upstream

import "errors"

// ErrWoken is returned by Next after Wake. It is not an end: the stream goes on with the following Next.
var ErrWoken = errors.New("upstream: woken")

// Response is a provider's answer: the final head, then its body as it arrives. Next belongs to one goroutine; Wake and Close may be
// called from any. Close must be called, whatever Next said.
type Response struct {
	Status int
	Header Header // without hop-by-hop fields; Content-Length and Content-Encoding are those of the wire unless Request.Decode decoded
	Proto  string // "HTTP/1.0", "HTTP/1.1" or "HTTP/2.0"
	Reused bool   // the connection had carried a request before

	target         string
	closeDelimited bool
	body           body
	decode         *decoding // nil when the bytes are handed out as they came
}

// body is one response body of either protocol. Its errors are ErrWoken, io.EOF or an *Error without its Target.
type body interface {
	next() ([]byte, error)
	wake()
	close() error
}

// Next blocks for more of the body and returns all of it that is at hand, at least one byte. The slice is valid until the following
// Next or Close. The error is io.EOF when the body is complete by its framing, or ended with its connection and had no framing (see
// CloseDelimited); ErrWoken after a Wake; otherwise an *Error with Safety Partial, which stays. Bytes received before a failure are
// always returned before it.
func (r *Response) Next() ([]byte, error) {
	var p []byte
	var err error
	if r.decode != nil {
		p, err = r.decode.next(r.body)
	} else {
		p, err = r.body.next()
	}
	if e, ok := err.(*Error); ok {
		e.Target = r.target
	}
	return p, err
}

// Wake makes a blocked Next, or else the following one, return ErrWoken once. Wakes that nobody has seen yet are one wake. It never
// loses or delays a byte, and costs the reader nothing as long as it is not called.
func (r *Response) Wake() { r.body.wake() }

// Close ends the stream: before its end by closing the connection (HTTP/1.1) or with RST_STREAM CANCEL (HTTP/2), so that the provider
// stops at once; after it by giving the connection back. A Next that is blocked returns an *Error of Kind Canceled. It is idempotent.
func (r *Response) Close() error {
	err := r.body.close()
	if r.decode != nil {
		r.decode.close()
	}
	return err
}

// CloseDelimited reports that the body has neither length nor chunks, so that its io.EOF says no more than that the peer closed.
func (r *Response) CloseDelimited() bool { return r.closeDelimited }
