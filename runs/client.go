package runs

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Client talks to the sidecar's admin listener. It may be used by any number of
// goroutines.
type Client struct {
	// URL of the admin listener, such as http://127.0.0.1:8791.
	URL string
	// Header goes with every request: the credential that the provider's requests
	// carry, so that the runs are the same caller's.
	Header http.Header
	// HTTP is what sends; nil: a client of its own without a proxy.
	HTTP *http.Client
	// Tries is how often a request is made whose answer is lost or says that the
	// ledger cannot be reached; default 4. Pause is the wait before the second,
	// doubled before each other; default 100 ms.
	Tries int
	Pause time.Duration
}

// direct sends to loopback, where no proxy of the environment has a say.
var direct = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8, IdleConnTimeout: time.Minute}}

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 16 << 20

// do makes a request, again while it may help. in and out may be nil.
func (c *Client) do(ctx context.Context, method, path string, fence uint64, key string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("runs: encode: %w", err)
		}
	}
	tries, pause := c.Tries, c.Pause
	if tries <= 0 {
		tries = 4
	}
	if pause <= 0 {
		pause = 100 * time.Millisecond
	}
	for n := 1; ; n++ {
		err := c.once(ctx, method, path, fence, key, body, out)
		if !errors.Is(err, ErrUnavailable) || n == tries {
			return err
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return fmt.Errorf("%w: %w", err, context.Cause(ctx))
		case <-t.C:
		}
		pause *= 2
	}
}

func (c *Client) once(ctx context.Context, method, path string, fence uint64, key string, body []byte, out any) error {
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.URL, "/")+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("runs: %w", err)
	}
	for name, values := range c.Header {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	r.Header.Set("Content-Type", "application/json")
	if fence != 0 {
		r.Header.Set(FenceHeader, strconv.FormatUint(fence, 10))
	}
	if key != "" {
		r.Header.Set(KeyHeader, key)
	}
	h := c.HTTP
	if h == nil {
		h = direct
	}
	res, err := h.Do(r)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%w: read the answer: %w", ErrUnavailable, err)
	}
	if res.StatusCode == http.StatusOK {
		if err := json.Unmarshal(b, out); err != nil {
			return fmt.Errorf("%w: read the answer: %w", ErrUnavailable, err)
		}
		return nil
	}
	var f failed
	if json.Unmarshal(b, &f) != nil || f.Error.Code == "" {
		return fmt.Errorf("runs: %s %s: %s: %.200q", method, path, res.Status, b)
	}
	if res.StatusCode == http.StatusServiceUnavailable {
		return fmt.Errorf("%w: %s", ErrUnavailable, f.Error.Message)
	}
	return &Refusal{Code: f.Error.Code, Message: f.Error.Message, Legal: f.Error.Legal, Status: res.StatusCode}
}

// Get returns what is known of a run.
func (c *Client) Get(ctx context.Context, id string) (*Run, error) {
	var r Run
	if err := c.do(ctx, http.MethodGet, runPath(id), 0, "", nil, &r); err != nil {
		return nil, err
	}
	return &r, nil
}

// List returns the runs last written, of all callers, at most n of them and without
// their steps. It is the operator's: where there is an admin token, Header holds it.
func (c *Client) List(ctx context.Context, n int) ([]*Run, error) {
	var l listed
	if err := c.do(ctx, http.MethodGet, "/runs?n="+strconv.Itoa(n), 0, "", nil, &l); err != nil {
		return nil, err
	}
	return l.Runs, nil
}

// Recovery asks what may be done with a run that is not claimed.
func (c *Client) Recovery(ctx context.Context, id string) (*Recovery, error) {
	return c.recovery(ctx, id, 0)
}

func (c *Client) recovery(ctx context.Context, id string, fence uint64) (*Recovery, error) {
	var r Recovery
	if err := c.do(ctx, http.MethodGet, runPath(id)+"/recovery", fence, "", nil, &r); err != nil {
		return nil, err
	}
	return &r, nil
}

// Claim makes the caller the run's process, from whoever was before: what that one
// writes from now on is refused. A run that is not there begins, and the declaration
// is made for it. A run that has steps already keeps its own: if that is another one,
// the claimed run comes with a [*Refusal] of code too_late.
func (c *Client) Claim(ctx context.Context, id string, d Declaration) (*Claimed, error) {
	var t told
	if err := c.do(ctx, http.MethodPut, runPath(id), 0, "", beginning{}, &t); err != nil {
		return nil, err
	}
	if err := c.do(ctx, http.MethodPost, runPath(id)+"/claim", 0, newKey(), claiming{}, &t); err != nil {
		return nil, err
	}
	run := &Claimed{c: c, id: id, fence: t.Run.Fence}
	return run, run.tell(ctx, "/declare", d)
}

// Claimed is a run in the hands of this process.
type Claimed struct {
	c     *Client
	id    string
	fence uint64
}

// ID returns the run's id, to be sent as X-Run-Id with its inferences.
func (r *Claimed) ID() string { return r.id }

// Fence returns the number of the claim.
func (r *Claimed) Fence() uint64 { return r.fence }

// Get returns what is known of the run.
func (r *Claimed) Get(ctx context.Context) (*Run, error) { return r.c.Get(ctx, r.id) }

// Recovery asks what may be done now.
func (r *Claimed) Recovery(ctx context.Context) (*Recovery, error) {
	return r.c.recovery(ctx, r.id, r.fence)
}

// Step tells of a turn that did not go through the sidecar, when it has ended: the
// message, of which only the digest is sent, and every call that it asks for. Only when
// it returns nil may one of them be begun. A turn without calls ends the run, unless it
// is paused or waits for a ticket. The same turn again is no error, so long as it is the
// last one and its batch is open.
func (r *Claimed) Step(ctx context.Context, t Turn) error {
	sum := sha256.Sum256(t.Message)
	c := committing{Message: hex.EncodeToString(sum[:]), Model: t.Model, Finish: t.Finish, Ticket: t.Ticket, Paused: t.Paused}
	for _, call := range t.Calls {
		sum := sha256.Sum256(call.Args)
		c.Calls = append(c.Calls, asked{ID: call.ID, Name: call.Name, Args: hex.EncodeToString(sum[:])})
	}
	return r.tell(ctx, "/steps", c)
}

// Start announces an attempt at a call. Only when it returns nil may the effect begin.
func (r *Claimed) Start(ctx context.Context, call string, attempt int) error {
	return r.tell(ctx, callPath(call)+"/start", starting{Attempt: attempt})
}

// Result tells the outcome of an attempt.
func (r *Claimed) Result(ctx context.Context, call string, attempt int, content []byte, failed bool) error {
	return r.tell(ctx, callPath(call)+"/result", resulting{Attempt: attempt, Content: content, Error: failed})
}

// Lose gives a call up: whether it ran cannot be known.
func (r *Claimed) Lose(ctx context.Context, call, why string) error {
	return r.tell(ctx, callPath(call)+"/lose", losing{Why: why})
}

// Wait makes a call wait for a ticket, or with an empty call the run.
func (r *Claimed) Wait(ctx context.Context, call string, t Ticket) error {
	path := "/wait"
	if call != "" {
		path = callPath(call) + path
	}
	return r.tell(ctx, path, waiting{Ticket: t})
}

// Resume redeems a ticket. Only when it returns nil may what waited go on.
func (r *Claimed) Resume(ctx context.Context, ticket, kind string) error {
	return r.tell(ctx, "/resume", resuming{Ticket: ticket, Kind: kind})
}

// End ends the run; kind is the type of failure, with cause "failed".
func (r *Claimed) End(ctx context.Context, cause, kind string) error {
	return r.tell(ctx, "/end", ending{Cause: cause, Type: kind})
}

func (r *Claimed) tell(ctx context.Context, path string, body any) error {
	var t told
	return r.c.do(ctx, http.MethodPost, runPath(r.id)+path, r.fence, newKey(), body, &t)
}

func runPath(id string) string    { return "/runs/" + url.PathEscape(id) }
func callPath(call string) string { return "/calls/" + url.PathEscape(call) }

// newKey is one intent's: it is repeated with the request, never by another.
func newKey() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
