package proxy

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/valyala/fasthttp"
	"golang.org/x/net/http/httpguts"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/bedrock"
	"github.com/unbroken-llm/unbroken/dialect/gemini"
	"github.com/unbroken-llm/unbroken/dialect/interactions"
	"github.com/unbroken-llm/unbroken/upstream"
)

// request is a client's request, copied out of its RequestCtx.
type request struct {
	under  *terms
	method string
	target string // path and query exactly as they came
	header upstream.Header
	http10 bool
	route

	body []byte // as it came, if it was read
	size int64  // declared; -1: chunked
	rest *source

	// of a protected one
	who     *checkpoint.Scope // nil: the numbers of callers were not told apart when it came
	caller  checkpoint.Scope  // see Server.caller
	told    bool              // caller is
	answers bool              // calls of a model, as later found
	run     checkpoint.RunID
	named   bool // by the caller
	retried bool // its SDK says that it is not the first try
	finish  bool // the turn goes on without its client
	events  bool
	// background: its route wants the provider to hold the generation.
	background bool
	// upgrade: it wants calls that do not stream served from a stream; upgraded is
	// what became of that, as the caller is told.
	upgrade  bool
	upgraded string
	plain    []byte // body, its content coding undone
	asks     *dialect.Request
}

// Reasons for relaying a request unprotected, as X-Unbroken-Protection tells them.
const (
	unprotectedSize    = "body_too_large"
	unprotectedCoding  = "unknown_content_encoding"
	unprotectedRequest = "request_not_understood"
	unprotectedMask    = "answer_masked"               // Google's field masks: only a part of the answer is asked for
	unprotectedModel   = "wire_of_the_model_not_known" // Bedrock's InvokeModel for others than Anthropic
)

var (
	errRunID   = fmt.Errorf("%s must be 1 to %d visible ASCII characters, without slashes, and neither . nor .. alone", headerRun, checkpoint.MaxRunID)
	errBody    = errors.New("the request body is not what its Transfer-Encoding says")
	errTarget  = errors.New("the request target must be a path: is HTTP_PROXY or HTTPS_PROXY pointing at unbroken? It is no forward proxy")
	errSpace   = errors.New("the request target holds a space or a control character")
	errField   = errors.New("a header field has an invalid name or a control character in its value")
	errUpgrade = errors.New("unbroken relays HTTP, not WebSocket: use the HTTP streaming transport")
)

// take copies the head of a request.
func (s *Server) take(ctx *fasthttp.RequestCtx) *request {
	h := &ctx.Request.Header
	return &request{
		under:  s.terms.Load(),
		method: methodOf(h.Method()),
		target: string(h.RequestURI()),
		header: parseHeader(h.RawHeaders()),
		http10: !h.IsHTTP11(),
		size:   int64(h.ContentLength()),
	}
}

func methodOf(b []byte) string {
	if string(b) == fasthttp.MethodPost {
		return fasthttp.MethodPost
	}
	return string(b)
}

// acceptable refuses what is no request to an origin.
func (r *request) acceptable() (status int, err error) {
	if !strings.HasPrefix(r.target, "/") && !(r.target == "*" && r.method == "OPTIONS") {
		return fasthttp.StatusBadRequest, errTarget
	}
	if listed(r.header, "Upgrade", "websocket") {
		return fasthttp.StatusUpgradeRequired, errUpgrade
	}
	if strings.ContainsFunc(r.target, func(c rune) bool { return c <= ' ' || c == 0x7f }) {
		return fasthttp.StatusBadRequest, errSpace
	}
	for _, f := range r.header {
		if !httpguts.ValidHeaderFieldName(f.Name) || !httpguts.ValidHeaderFieldValue(f.Value) {
			return fasthttp.StatusBadRequest, errField
		}
	}
	return 0, nil
}

// readBody reads the body of a request that may be protected. reason is not
// empty if it cannot be; what was not read is then in rest. The body is read
// before anything goes upstream, since a turn that cannot be asked for again
// cannot be healed, and because a client's departure hides behind unread bytes
// (FIELD-REPORTS G1).
func (s *Server) readBody(ctx *fasthttp.RequestCtx, r *request) (reason string, err error) {
	from := ctx.RequestBodyStream()
	if from == nil {
		r.size = 0
		return unprotectedRequest, nil
	}
	src := newSource(from, callerOf(ctx.Conn()), r.under.cfg.BodyStall)
	r.body, err = slurp(src, r.size, r.under.cfg.MaxBody)
	switch {
	case errors.Is(err, errTooLarge):
		r.rest = src
		return unprotectedSize, nil
	case err != nil:
		src.revoke()
		return "", err
	}
	src.revoke()
	r.plain = r.body
	if coding := strings.Join(r.header.Values("Content-Encoding"), ","); coding != "" {
		switch r.plain, err = decoded(r.body, coding, r.under.cfg.MaxBody); {
		case errors.Is(err, errTooLarge):
			return unprotectedSize, nil
		case errors.Is(err, upstream.ErrCoding):
			return unprotectedCoding, nil
		case err != nil:
			return unprotectedRequest, nil
		}
	}
	switch r.asks, err = r.parse(r.plain); {
	case errors.Is(err, bedrock.ErrModel):
		return unprotectedModel, nil
	case err != nil:
		return unprotectedRequest, nil
	case r.masked():
		return unprotectedMask, nil
	}
	r.asks.Keepalive = countsNoComments(r.header)
	return "", nil
}

// masked reports whether the answer is to be sent only in part.
func (r *request) masked() bool {
	switch r.speaks.(type) {
	case gemini.Dialect, gemini.Array, interactions.Dialect:
		return gemini.Masked(r.path, r.header.Get)
	}
	return false
}

// understand reads the request anew, of a body that was edited for it: what goes on
// with the turn must go on with what was asked.
func (r *request) understand(body []byte) {
	asks, err := r.parse(body)
	if err != nil {
		panic("BUG: proxy: an edited request cannot be understood: " + err.Error())
	}
	asks.Keepalive = r.asks.Keepalive
	r.asks = asks
}

// parse reads a body in the request's dialect. Some say in the path what others say
// in the body.
func (r *request) parse(body []byte) (*dialect.Request, error) {
	if at, ok := r.speaks.(interface {
		ParseAt(path string, body []byte) (*dialect.Request, error)
	}); ok {
		return at.ParseAt(r.path, body)
	}
	return r.speaks.Parse(body)
}

// countsNoComments recognises Codex, whose idle timer SSE comments do not reset
// (WIRE 3.3).
func countsNoComments(h upstream.Header) bool {
	return strings.HasPrefix(h.Get("originator"), "codex") || strings.HasPrefix(strings.ToLower(h.Get("User-Agent")), "codex")
}

// upload is the body of a request that is relayed untouched.
func (s *Server) upload(ctx *fasthttp.RequestCtx, r *request) (body []byte, stream io.Reader) {
	switch {
	case r.rest != nil && len(r.body) > 0:
		return nil, io.MultiReader(bytes.NewReader(r.body), r.rest)
	case r.rest != nil:
		return nil, r.rest
	case r.body != nil:
		return r.body, nil
	}
	if from := ctx.RequestBodyStream(); from != nil {
		r.rest = newSource(from, callerOf(ctx.Conn()), r.under.cfg.BodyStall)
		return nil, r.rest
	}
	return nil, nil
}

// identify reads Unbroken's own request headers.
func (r *request) identify() (err error) {
	err = r.name()
	switch mode := r.header.Get(headerRecovery); mode {
	case "", "transparent":
	case "events":
		r.events = true
	default:
		err = errors.Join(err, errors.New(headerRecovery+" must be transparent or events"))
	}
	return err
}

// token is 128 random bits behind a prefix.
func token(prefix string) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	var text [48]byte
	return string(hex.AppendEncode(append(text[:0], prefix...), b[:]))
}

// scope tells callers apart without keeping their credential.
func (s *Server) scope(h upstream.Header) checkpoint.Scope { return s.scopeUnder(s.terms.Load(), h) }

func (s *Server) scopeUnder(t *terms, h upstream.Header) (sc checkpoint.Scope) {
	c := credential(h)
	if name := t.cfg.ScopeHeader; name != "" && h.Get(name) != "" {
		c = "\x00" + h.Get(name) // no credential begins so
	}
	if c != "" {
		sc = s.scopes.Load().of(c)
	}
	return sc
}

// caller is whose request r is, told once.
func (s *Server) caller(r *request) checkpoint.Scope {
	if !r.told {
		r.told, r.caller = true, s.scopeUnder(r.under, r.header)
	}
	return r.caller
}

// fingerprint identifies the request by its content. Query and version headers
// change what a body means.
func (r *request) fingerprint() checkpoint.Fingerprint {
	path, query, _ := strings.Cut(r.target, "?")
	return checkpoint.Request{
		Method: r.method, Path: path, Query: query, Body: r.body,
		Versions: []string{
			strings.Join(r.header.Values("anthropic-beta"), ","),
			r.header.Get("anthropic-version"),
			strings.Join(r.header.Values("openai-beta"), ","),
		},
	}.Fingerprint()
}
