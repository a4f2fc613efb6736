package relaytest

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/faultinject"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/turn"
)

// Simulated is a scenario as it went.
type Simulated struct {
	Result
	// Transcript is every input and effect, byte for byte.
	Transcript string
	// Request is what the client asked, Answer what the provider meant to say.
	Request []byte
	Answer  faultinject.Answer
	// Left: the client left. Stopped: the process was told to stop.
	Left, Stopped bool
	// Events: the stream ran in mode events.
	Events bool
}

// Simulate draws a scenario from seed and plays it: an answer, a client, and a
// provider that breaks in some way on some attempts. The error names the first
// invariant that did not hold. The same seed gives the same transcript.
func Simulate(w Wire, seed uint64) (Simulated, error) {
	sc := newScene(w, seed)
	req, err := w.Dialect.Parse(sc.request)
	if err != nil {
		return Simulated{}, err
	}
	sim := simulation{scene: sc, req: req, out: Simulated{Request: sc.request, Answer: sc.answer, Events: sc.config.Events}}
	sim.r = run{w: World{Dialect: w.Dialect}, first: sc.request, p: sim.provide, start: time.Unix(1_800_000_000, 0)}
	err = errors.Join(sim.play(), sim.bad)
	sim.out.Result = sim.r.res
	sim.out.Transcript = sim.log.String()
	if err == nil && sim.r.res.Broken != "" {
		err = errors.New("law: " + sim.r.res.Broken)
	}
	if err == nil {
		err = sim.judge()
	}
	return sim.out, err
}

type simulation struct {
	*scene
	req *dialect.Request
	r   run
	out Simulated
	log strings.Builder
	bad error // a request that no provider could answer

	// The client's side, read as it comes.
	scan dialect.Scanner
	dec  dialect.Decoder
	has  turn.Snapshot
	acts acts // what it could act on so far
}

// acts counts what makes a client act.
type acts struct {
	calls    int
	finished bool
}

func (sim *simulation) provide(q Request) Reply {
	reply, err := sim.reply(q)
	if err != nil && sim.bad == nil {
		sim.bad = fmt.Errorf("attempt %d: %w in %s", q.N, err, q.Body)
	}
	return reply
}

func (sim *simulation) play() error {
	now := sim.r.start
	s, fx := relay.New(sim.config, sim.wire.Dialect, sim.req, sim.request, now)
	if err := sim.took(now, "new", fx); err != nil {
		return err
	}
	for step := 1; !s.Done(); step++ {
		if step > 200_000 || now.Sub(sim.r.start) > 6*time.Hour {
			return errors.New("the stream does not come to an end")
		}
		due := s.Deadline()
		in, at := sim.r.next(s, now)
		if at.After(now) {
			now = at
		}
		switch {
		case step == sim.stop:
			in, sim.out.Stopped = relay.Stop{Reason: "drain"}, true
		case sim.leave > 0 && len(sim.r.res.Body) >= sim.leave:
			in, sim.out.Left = relay.Gone{}, true
		}
		if err := sim.took(now, describe(in), s.Step(now, in)); err != nil {
			return err
		}
		if _, tick := in.(relay.Tick); tick && !s.Done() {
			if next := s.Deadline(); next.Equal(due) && !due.IsZero() {
				return fmt.Errorf("the deadline stands still at %v", due.Sub(sim.r.start))
			}
		}
	}
	if sim.r.res.End == relay.Open {
		return errors.New("the stream ended without saying how")
	}
	return nil
}

func describe(in relay.Input) string {
	switch in := in.(type) {
	case relay.Opened:
		return fmt.Sprintf("opened %d: %d", in.Attempt, in.Status)
	case relay.Chunk:
		return fmt.Sprintf("chunk %d: %q", in.Attempt, in.Bytes)
	case relay.Ended:
		return fmt.Sprintf("ended %d: %v", in.Attempt, in.End)
	case relay.Stop:
		return "stop " + in.Reason
	}
	return fmt.Sprintf("%T", in)
}

// took writes a step down, performs its effects and checks what must hold at every
// step.
func (sim *simulation) took(now time.Time, in string, fx *relay.Effects) error {
	fmt.Fprintf(&sim.log, "%v %s\n", now.Sub(sim.r.start), in)
	if len(fx.Persist.Log) > 0 || fx.Persist.Durable {
		fmt.Fprintf(&sim.log, "\tpersist %d %x durable=%v\n", fx.Persist.Offset, fx.Persist.Log, fx.Persist.Durable)
	}
	if fx.Head != nil {
		fmt.Fprintf(&sim.log, "\thead %d\n", fx.Head.Status)
	}
	if len(fx.Client) > 0 {
		fmt.Fprintf(&sim.log, "\tclient %q\n", fx.Client)
	}
	if fx.Open != nil {
		fmt.Fprintf(&sim.log, "\topen %d %s\n", fx.Open.N, fx.Open.Body)
	}
	for _, n := range fx.Notes {
		if n.Kind == relay.NoteInterrupted {
			fmt.Fprintf(&sim.log, "\t%v -> %v (%s)\n", n.Cause.Kind, n.Plan.Kind, n.Plan.Reason)
		}
	}
	if fx.End != relay.Open {
		fmt.Fprintf(&sim.log, "\tend %d\n", fx.End)
	}
	sim.r.perform(fx, now)
	if len(fx.Client) == 0 || !sim.r.res.Head.Stream {
		return nil
	}
	return sim.acted(fx.Client, fx.Persist.Durable)
}

// acted checks that whatever the client could act on for the first time left with
// its checkpoint. What is held back may be in the checkpoint, too.
func (sim *simulation) acted(client []byte, durable bool) error {
	if err := sim.read(client); err != nil {
		return fmt.Errorf("client bytes: %w", err)
	}
	now := sim.runnable(&sim.has)
	if now != sim.acts && !durable {
		return fmt.Errorf("the client can act on %+v, before on %+v, without its checkpoint", now, sim.acts)
	}
	sim.acts = now
	if !durable {
		return nil
	}
	log, err := turn.Replay(sim.r.res.Log)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if kept := sim.runnable(log); kept.calls < now.calls || kept.finished != now.finished || !bytes.HasPrefix(log.Prose(), sim.has.Prose()) {
		return fmt.Errorf("the client can act on %+v, the checkpoint holds %+v", now, kept)
	}
	return nil
}

// read folds what the client just got.
func (sim *simulation) read(p []byte) error {
	if sim.dec == nil {
		sim.dec = sim.wire.Dialect.NewDecoder(sim.req)
		sim.scan = dialect.NewScanner(sim.wire.Dialect, 0)
	}
	sim.scan.Push(p)
	for e, ok := sim.scan.Next(); ok; e, ok = sim.scan.Next() {
		if e.Data == nil {
			continue
		}
		ds, err := sim.dec.Decode(nil, e)
		if err != nil {
			return err
		}
		for _, d := range ds {
			if err := sim.has.Fold(d); err != nil {
				return fmt.Errorf("%w in %q", err, e.Data)
			}
		}
	}
	return nil
}

// runnable counts the calls a client may run: whole ones, which in mode events it
// sees grow and takes for whole when they close.
func (sim *simulation) runnable(s *turn.Snapshot) acts {
	a := acts{finished: s.Finished()}
	for i := range s.Blocks {
		if b := &s.Blocks[i]; b.IsCall() && b.Live() && b.Complete() && (b.Closed || !sim.config.Events) && !canceled(sim.r.res.Body, b.ID) {
			a.calls++
		}
	}
	return a
}

func (sim *simulation) held(has *turn.Snapshot) error {
	log, err := turn.Replay(sim.r.res.Log)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	if got, want := Outline(log), Outline(has); got != want {
		return fmt.Errorf("checkpoint holds\n%s\nclient has\n%s", got, want)
	}
	return nil
}

// raws splits b into its whole units.
func raws(d dialect.Dialect, b []byte) [][]byte { return unitsOf(dialect.NewScanner(d, 0), b) }
