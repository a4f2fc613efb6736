package gauge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"
)

// RedisCost is what checkpoints cost a Redis, by its own books (INFO).
type RedisCost struct {
	Answers []AnswerCost `json:"answers"`
	Streams StreamsCost  `json:"streams"`
}

// AnswerCost is that of one answer: all that Redis received for it, keys, scripts'
// names and heartbeats included.
type AnswerCost struct {
	Shape    Shape `json:"shape"`
	Text     int64 `json:"text_bytes"` // of the answer
	Received int64 `json:"received_bytes"`
	Scripts  int64 `json:"scripts"` // that the proxy called
}

// StreamsCost is that of many streams at once, for each second.
type StreamsCost struct {
	Streams  int                `json:"streams"`
	Events   float64            `json:"events_per_second"`
	Received float64            `json:"received_bytes_per_second"`
	CPU      float64            `json:"cpu"` // of one core
	Commands map[string]float64 `json:"commands_per_second"`
	// All is the sum of Commands. What a script calls counts as it does in INFO, beside
	// the script.
	All float64 `json:"all_commands_per_second"`
}

// PerStream is how many commands Redis executes for a stream in a second.
func (c StreamsCost) PerStream() float64 { return c.All / float64(c.Streams) }

// PerEvent is how many it executes for an event.
func (c StreamsCost) PerEvent() float64 { return c.All / c.Events }

// answers are of 1 KB, 100 KB and 5 MB, at the pace of a fast model, and as fast as
// they go.
var answers = []Shape{
	{Events: 25, Bytes: 20, Every: 5 * time.Millisecond},
	{Events: 2500, Bytes: 20, Every: 5 * time.Millisecond},
	{Events: 25, Bytes: 20},
	{Events: 2500, Bytes: 20},
	{Events: 125_000, Bytes: 20},
}

// textBytes is the text of one event.
func (s Shape) textBytes() int { return len(stampMark) + stampDigits + len(" ") + s.Bytes }

// Redis measures the unbroken binary with a Redis of its own.
func Redis(ctx context.Context, binary string, log io.Writer) (c RedisCost, err error) {
	provider, err := NewProvider("")
	if err != nil {
		return c, err
	}
	defer provider.Close()
	dir, err := os.MkdirTemp("", "unbroken-bench-")
	if err != nil {
		return c, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	at, stop, err := startRedis(dir)
	if err != nil {
		return c, err
	}
	defer stop()
	p, err := Unbroken("redis", binary, "redis://"+at, "--ledger", "false").begin(dir, provider.Addr())
	if err != nil {
		return c, err
	}
	defer p.stop()
	b := books{redis.NewClient(&redis.Options{Addr: at, Protocol: 2, DisableIdentity: true})}
	defer func() { _ = b.c.Close() }()
	for _, shape := range answers {
		done := progress(log, "an answer of %s", amount(int64(shape.Events*shape.textBytes())))
		a, err := b.answer(ctx, p.addr, shape)
		if err != nil {
			done("failed")
			return c, err
		}
		done(fmt.Sprintf("%d bytes, %d scripts", a.Received, a.Scripts))
		c.Answers = append(c.Answers, a)
	}
	const streams = 1000
	done := progress(log, "%d streams", streams)
	c.Streams, err = b.streams(ctx, p.addr, streams)
	done(fmt.Sprintf("%.0f events/s", c.Streams.Events))
	return c, err
}

// books are those of a Redis.
type books struct{ c *redis.Client }

// page is one look at them.
type page struct {
	at       time.Time
	received int64
	cpu      float64
	calls    map[string]int64
}

func (b books) read(ctx context.Context) (p page, err error) {
	text, err := b.c.Info(ctx, "stats", "cpu", "commandstats").Result()
	if err != nil {
		return p, fmt.Errorf("ask redis: %w", err)
	}
	p = page{at: time.Now(), calls: map[string]int64{}}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		switch cmd, isCmd := strings.CutPrefix(name, "cmdstat_"); {
		case !ok:
		case isCmd:
			calls, _, _ := strings.Cut(strings.TrimPrefix(value, "calls="), ",")
			p.calls[cmd], err = strconv.ParseInt(calls, 10, 64)
		case name == "total_net_input_bytes":
			p.received, err = strconv.ParseInt(value, 10, 64)
		case name == "used_cpu_sys", name == "used_cpu_user":
			var s float64
			s, err = strconv.ParseFloat(value, 64)
			p.cpu += s
		}
		if err != nil {
			return p, fmt.Errorf("redis' %s is %q: %w", name, value, err)
		}
	}
	return p, nil
}

// quiet reads the books once nothing but heartbeats comes in any more.
func (b books) quiet(ctx context.Context) (p page, err error) {
	for was := int64(-1); ; was = p.calls["evalsha"] {
		if p, err = b.read(ctx); err != nil || p.calls["evalsha"] == was {
			return p, err
		}
		if err := pause(ctx, 300*time.Millisecond); err != nil {
			return p, err
		}
	}
}

// answer measures one answer.
func (b books) answer(ctx context.Context, addr string, s Shape) (a AnswerCost, err error) {
	before, err := b.quiet(ctx)
	if err != nil {
		return a, err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+addr+"/v1/chat/completions", bytes.NewReader(s.Body(true, 1000)))
	if err != nil {
		return a, err
	}
	q.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer bench"}}
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return a, err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err == nil && !bytes.Contains(body, Chat.terminal()) {
		err = errors.New("a stream without its end")
	}
	if err != nil {
		return a, err
	}
	after, err := b.quiet(ctx)
	return AnswerCost{
		Shape: s, Text: int64(s.Events * s.textBytes()),
		Received: after.received - before.received, Scripts: after.calls["evalsha"] - before.calls["evalsha"],
	}, err
}

const (
	// window is how long many streams are measured.
	window = 10 * time.Second
	// leastOfDue is the share of the events that were due without which what was
	// measured is not what it is called.
	leastOfDue = 0.9
)

// streams measures n streams with an event each 50 ms, as often as a turn is flushed:
// faster ones share flushes, and ask a machine for more than Redis' books.
func (b books) streams(ctx context.Context, addr string, n int) (c StreamsCost, err error) {
	const groups = 20
	sc := Scenario{Stream: true, Clients: n / groups, Prompt: 1000, Shape: Shape{Events: 2500, Bytes: 20, Every: 50 * time.Millisecond}}
	var loads []*Load
	for range groups { // one after the other, so that no burst of claims is lost
		l := Start(addr, sc)
		defer l.Stop()
		if err := flows(ctx, l, sc.Clients, true); err != nil {
			return c, err
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return c, err
		}
		loads = append(loads, l)
	}
	count := func() (n int64, err error) {
		for _, l := range loads {
			n += l.events.Load()
			err = errors.Join(err, l.Err())
		}
		return n, err
	}
	if err := pause(ctx, 2*time.Second); err != nil {
		return c, err
	}
	// The window is between two looks at the books, each with a count of events beside
	// it; what the looks themselves cost is not in it.
	events, err := count()
	if err != nil {
		return c, err
	}
	before, err := b.read(ctx)
	if err != nil {
		return c, err
	}
	if err := pause(ctx, window); err != nil {
		return c, err
	}
	sum, err := count()
	if err != nil {
		return c, err
	}
	after, err := b.read(ctx)
	if err != nil {
		return c, err
	}
	took := after.at.Sub(before.at).Seconds()
	c = StreamsCost{
		Streams: n, Events: float64(sum-events) / took, Received: float64(after.received-before.received) / took,
		CPU: (after.cpu - before.cpu) / took, Commands: map[string]float64{},
	}
	for name, calls := range after.calls {
		if calls > before.calls[name] && name != "info" {
			c.Commands[name] = float64(calls-before.calls[name]) / took
			c.All += c.Commands[name]
		}
	}
	if due := float64(n) / sc.Shape.Every.Seconds(); c.Events < due*leastOfDue {
		return c, fmt.Errorf("%d streams gave %.0f events/s where %.0f were due: the machine is too slow, or too busy, for the figures to be those of %d streams", n, c.Events, due, n)
	}
	return c, err
}

// Table writes the costs for people, in Markdown.
func (c RedisCost) Table(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(t, "| answer\t| pace\t| Redis receives\t| for each byte\t| scripts\t|")
	fmt.Fprintln(t, "|---\t|---\t|---\t|---\t|---\t|")
	for _, a := range c.Answers {
		pace := "as fast as it goes"
		if a.Shape.Every > 0 {
			pace = "an event each " + a.Shape.Every.String()
		}
		fmt.Fprintf(t, "| %s\t| %s\t| %s\t| %.2f\t| %d\t|\n", amount(a.Text), pace, amount(a.Received), float64(a.Received)/float64(a.Text), a.Scripts)
	}
	_ = t.Flush()
	s := c.Streams
	fmt.Fprintf(w, "\n%d streams, %.0f events/s: Redis receives %s/s and uses %.0f %% of a core. It executes %.0f commands a second, %.2f for a stream in a second and %.3f for an event:\n\n",
		s.Streams, s.Events, amount(int64(s.Received)), 100*s.CPU, s.All, s.PerStream(), s.PerEvent())
	names := make([]string, 0, len(s.Commands))
	for name := range s.Commands {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := s.Commands[b] - s.Commands[a]; d != 0 {
			return int(d / max(d, -d))
		}
		return strings.Compare(a, b)
	})
	t = tabwriter.NewWriter(w, 0, 0, 1, ' ', 0)
	fmt.Fprintln(t, "| command\t| calls/s\t| for a stream\t| for an event\t|")
	fmt.Fprintln(t, "|---\t|---\t|---\t|---\t|")
	for _, name := range names {
		n := s.Commands[name]
		fmt.Fprintf(t, "| `%s`\t| %.1f\t| %.3f\t| %.4f\t|\n", name, n, n/float64(s.Streams), n/s.Events)
	}
	_ = t.Flush()
}

// amount is a number of bytes in words.
func amount(n int64) string {
	switch {
	case n >= 1e6:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f KB", float64(n)/1e3)
	}
	return fmt.Sprintf("%d B", n)
}
