package e2e

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/bench/gauge"
)

// span is a part of a run that gaps are counted for.
type span int32

const (
	warming span = iota
	healthy
	faulty
	after
	spans
)

// crowd is many streams through one proxy, and what their clients feel. Most are long;
// every eighth client has one short turn after the other, whose beginning and end are
// business of the store.
type crowd struct {
	addr   string
	now    atomic.Int32 // span
	each   []*listener
	wait   sync.WaitGroup
	stop   context.CancelFunc
	turns  atomic.Int64 // short ones that ended well
	faults chan error   // the first few
}

// listener is a client and, for each span, the most by which its proxy held an event
// back longer than the one before it, ns.
type listener struct {
	worst [spans]atomic.Int64
	begun atomic.Bool
	last  atomic.Int64 // stamp, ns
}

const (
	feltEvery = 200 * time.Millisecond
	shortTurn = 8
)

var (
	longShape  = gauge.Shape{Events: 3000, Bytes: 20, Every: feltEvery}
	shortShape = gauge.Shape{Events: shortTurn, Bytes: 20, Every: feltEvery / 2}
	stampOf    = regexp.MustCompile(`@(\d{19})`)
)

// gather opens n streams; the first is of the run that is named.
func gather(t *testing.T, base, run string, n int) *crowd {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	c := &crowd{addr: base[len("http://"):], stop: stop, faults: make(chan error, 8)}
	for i := range n {
		l, id := &listener{}, ""
		if i == 0 {
			id = run
		}
		c.each = append(c.each, l)
		time.Sleep(time.Millisecond) // so that phases differ
		c.wait.Go(func() {
			for ctx.Err() == nil {
				shape := longShape
				if i%8 == 7 {
					shape = shortShape
				}
				if err := c.listen(ctx, l, shape, id); err != nil && ctx.Err() == nil {
					select {
					case c.faults <- fmt.Errorf("stream %d: %w", i, err):
					default:
					}
					return
				}
				if shape == shortShape {
					c.turns.Add(1)
				}
			}
		})
	}
	t.Cleanup(c.leave)
	eventually(t, "all streams flow", func() bool {
		return !slices.ContainsFunc(c.each, func(l *listener) bool { return !l.begun.Load() }) || len(c.faults) > 0
	})
	return c
}

func (c *crowd) leave() {
	c.stop()
	c.wait.Wait()
}

// fault is the first thing that went wrong, nil if nothing did.
func (c *crowd) fault() error {
	select {
	case err := <-c.faults:
		return err
	default:
		return nil
	}
}

// open sends a request for a shape.
func open(ctx context.Context, addr string, shape gauge.Shape, run string) (net.Conn, *http.Response, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, nil, err
	}
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	body := shape.Body(true, 100)
	named := ""
	if run != "" {
		named = "X-Run-Id: " + run + "\r\n"
	}
	_, err = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\nAuthorization: Bearer k\r\n%sContent-Length: %d\r\n\r\n%s", named, len(body), body)
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	res, err := http.ReadResponse(bufio.NewReaderSize(conn, 4<<10), nil)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", res.Status)
	}
	if err != nil {
		_ = conn.Close()
		return nil, nil, err
	}
	return conn, res, nil
}

// listen reads one stream to its end.
func (c *crowd) listen(ctx context.Context, l *listener, shape gauge.Shape, run string) error {
	conn, res, err := open(ctx, c.addr, shape, run)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	lines := bufio.NewScanner(res.Body)
	var arrived time.Time  // of the last event
	var late time.Duration // how late that was
	for n := 0; lines.Scan(); {
		now := time.Now()
		m := stampOf.FindSubmatch(lines.Bytes())
		switch {
		case m != nil:
			sent, _ := strconv.ParseInt(string(m[1]), 10, 64)
			was := late
			late = time.Duration(now.UnixNano() - sent)
			if n++; n > 1 {
				l.felt(span(c.now.Load()), late-was)
			}
			arrived = now
			l.last.Store(sent)
			l.begun.Store(true)
		case lines.Text() == "data: [DONE]":
			// The provider says it in one breath with its last event.
			l.felt(span(c.now.Load()), now.Sub(arrived))
			return nil
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return errors.New("a stream without its end")
}

func (l *listener) felt(at span, by time.Duration) {
	if w := &l.worst[at]; int64(by) > w.Load() {
		w.Store(int64(by)) // this goroutine alone writes
	}
}

// growth is by how much the worst gap of a stream grew from healthy to faulty: of the
// one that felt it most, and of all but one in a hundred.
func (c *crowd) growth() (most, p99 time.Duration) {
	var all []time.Duration
	for _, l := range c.each {
		all = append(all, time.Duration(l.worst[faulty].Load()-l.worst[healthy].Load()))
	}
	slices.Sort(all)
	return all[len(all)-1], all[(len(all)-1)*99/100]
}
