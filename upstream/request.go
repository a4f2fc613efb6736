package upstream

import (
	"errors"
	"io"
	"iter"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Request is what goes up, as it goes up. Open does not change it; Body must stay unchanged until the Response is closed (or Open
// failed), because a provider may answer while its body is still being sent.
type Request struct {
	Method string // "" is GET
	Path   string // raw path and query exactly as they go on the request line: never cleaned, decoded or joined
	Header Header // hop-by-hop fields, those named by Connection, Host, Content-Length and Expect are left out

	Body []byte // the body, when it is in memory

	// BodyStream is the alternative to Body: BodySize bytes, or any number of them when BodySize is -1 (sent chunked). It is read by
	// another goroutine while Open and Next run; a Read that blocks when the attempt is over is abandoned, so its source must end it.
	BodyStream io.Reader
	BodySize   int64

	// Decode makes Next yield the plain bytes of a compressed answer and drops Content-Encoding and Content-Length from the
	// response header. A coding that NewDecoder does not know is passed on as it came, header included.
	Decode bool
}

var (
	errMethod = errors.New("method is not a token")
	errPath   = errors.New("path must start with a slash and hold no spaces or control characters")
	errName   = errors.New("a header name is not a token")
	errValue  = errors.New("a header value holds a control character")
	errSize   = errors.New("body size must be -1 or more")
)

func (r *Request) validate() error {
	if r.Method != "" && !httpguts.ValidHeaderFieldName(r.Method) {
		return errMethod
	}
	if !validPath(r.Path) {
		return errPath
	}
	if r.BodySize < -1 {
		return errSize
	}
	for i := range r.Header {
		if !httpguts.ValidHeaderFieldName(r.Header[i].Name) {
			return errName
		}
		if !httpguts.ValidHeaderFieldValue(r.Header[i].Value) {
			return errValue
		}
	}
	return nil
}

// validPath keeps a path from breaking out of the request line. Everything else, ";" and "//" and bad escapes, is the caller's text.
func validPath(p string) bool {
	if p == "*" {
		return true
	}
	if !strings.HasPrefix(p, "/") {
		return false
	}
	for i := range len(p) {
		if p[i] <= ' ' || p[i] == 0x7f {
			return false
		}
	}
	return true
}

func (r *Request) method() string {
	if r.Method == "" {
		return "GET"
	}
	return r.Method
}

// size is the length of the body, -1 when only its end will tell.
func (r *Request) size() int64 {
	if r.BodyStream != nil {
		return r.BodySize
	}
	return int64(len(r.Body))
}

// declaresLength reports whether an empty body still needs a Content-Length (RFC 9110, section 8.6).
func (r *Request) declaresLength() bool {
	switch r.method() {
	case "POST", "PUT", "PATCH":
		return true
	}
	return r.size() > 0
}

// endToEnd yields the fields that travel: all but those of this connection and those we compute. Expect is ours to leave out, because
// asking for 100-continue only delays a body that is already here.
func (r *Request) endToEnd() iter.Seq[Field] {
	return func(yield func(Field) bool) {
		for _, f := range r.Header {
			if hopByHop(f.Name) || r.Header.named(f.Name) || computed(f.Name) {
				continue
			}
			if !yield(f) {
				return
			}
		}
	}
}

func computed(name string) bool {
	return strings.EqualFold(name, "Host") || strings.EqualFold(name, "Content-Length") || strings.EqualFold(name, "Expect")
}
