package upstream

import (
	"errors"
	"io"
	"strconv"
	"strings"
)

// framing says where an HTTP/1.1 body ends (RFC 9112, section 6.3).
type framing struct {
	kind  framingKind
	left  int64 // framedLength: bytes still to come
	chunk chunked
}

type framingKind uint8

const (
	framedLength  framingKind = iota // Content-Length, or no body at all
	framedChunked                    // Transfer-Encoding: chunked
	framedClose                      // by the end of the connection: nothing proves that it is complete
)

var (
	errLength   = errors.New("malformed or contradicting Content-Length")
	errTransfer = errors.New("transfer coding was not asked for")
)

// framingOf decides from a response head. exclusive means that the connection cannot carry another request even if the body ends well.
func framingOf(method string, h *head) (f framing, exclusive bool, err error) {
	length, hasLength, err := contentLength(h.header)
	if err != nil {
		return f, true, err
	}
	if method == "HEAD" || h.status == 204 || h.status == 304 {
		return f, false, nil
	}
	if coding := strings.ToLower(strings.Join(h.header.Values("Transfer-Encoding"), ",")); coding != "" {
		switch strings.TrimSpace(coding) {
		case "chunked":
			// A length beside it, or an HTTP/1.0 head, is how responses are smuggled: RFC 9112, section 6.1 says read and close.
			return framing{kind: framedChunked}, hasLength || h.minor == 0, nil
		case "identity":
		default:
			return f, true, errTransfer
		}
	}
	if hasLength {
		return framing{left: length}, false, nil
	}
	return framing{kind: framedClose}, true, nil
}

func contentLength(h Header) (n int64, ok bool, err error) {
	for i := range h {
		if len(h[i].Name) != 14 || !strings.EqualFold(h[i].Name, "Content-Length") {
			continue
		}
		for v := range strings.SplitSeq(h[i].Value, ",") {
			m, err := strconv.ParseUint(strings.TrimSpace(v), 10, 63)
			if err != nil || ok && int64(m) != n {
				return 0, false, errLength
			}
			n, ok = int64(m), true
		}
	}
	return n, ok, nil
}

// take removes the framing from p in place. n < len(p) only when the body ended inside p.
func (f *framing) take(p []byte) (payload []byte, n int, err error) {
	switch f.kind {
	case framedChunked:
		return f.chunk.decode(p)
	case framedLength:
		if int64(len(p)) > f.left {
			p = p[:f.left]
		}
		f.left -= int64(len(p))
	}
	return p, len(p), nil
}

// done reports that the framing proves the body complete.
func (f *framing) done() bool {
	return f.kind == framedLength && f.left == 0 || f.kind == framedChunked && f.chunk.state == chunkDone
}

// ended is the meaning of the connection's polite end at this point.
func (f *framing) ended() error {
	if f.kind == framedClose || f.done() {
		return io.EOF
	}
	return io.ErrUnexpectedEOF
}
