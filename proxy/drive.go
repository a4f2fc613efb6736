package proxy

import (
	"errors"
	"io"
	"time"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/turn"
	"github.com/unbroken-llm/unbroken/upstream"
)

// drive carries one protected request through: it waits for what happens, steps
// the machine, and performs the effects in their order. One goroutine at a time
// runs it: the handler until the head is known, then whoever writes the body,
// which with fasthttp is the same one.
type drive struct {
	// immutable
	srv      *Server
	req      *request
	first    []byte // body of the first attempt
	repaired bool   // first is not the client's own
	told     []byte // first, before ids in it were expanded
	life     *lifeline
	log      *journal // nil: nothing of this turn is written down
	seat     *seat    // nil: nobody else may come to this turn
	page     *page    // nil: the ledger learns nothing of this turn
	legs     []leg

	// driver only
	m    *relay.Stream // nil while another connection's turn is followed
	tail *tail         // nil: this one drives its turn
	fx   *relay.Effects
	now  time.Time
	res  *upstream.Response // of attempt nth
	nth  int
	open *opening
	ask  *opening    // what the machine asked for and is not under way
	said relay.Input // what it is told next, before anything else
	at   *origin     // whose live streams this one is counted among
	// asked is who was sent a request last; nil: nobody was sent one for this turn
	// yet. again: that one had been sent one before. unheard: nothing good was heard
	// of it yet.
	asked          *origin
	again, unheard bool
	// of the attempt
	permit permit
	ticket *ticket
	under  any // the HTTP/2 connection that died under it, and under others
	timer  *time.Timer
	tale   tale
	heard  Listener // nil: nobody listens
	over   bool
	// leaving: the turn is to go on without its client; away: it does.
	leaving, away bool
	// outdone: another process has a newer connection of this turn.
	outdone bool
}

// errAborted makes fasthttp close the connection without the last chunk.
var errAborted = errors.New("response aborted on purpose")

// drive begins to carry req through. A panic of it leaves what was entered until then.
func (s *Server) drive(req *request, life *lifeline) (d *drive) {
	d = &drive{srv: s, req: req, first: req.body, life: life, now: time.Now()}
	var plain []byte
	if plain, d.told = s.later(req); &plain[0] != &req.plain[0] || len(plain) != len(req.plain) {
		d.first, d.repaired = plain, true
		req.understand(plain)
	}
	legs, cfg := s.legs(req)
	d.legs = legs
	plain = d.background(d.upgrade(plain))
	cfg.Events = req.events
	cfg.Seed = s.seed.Add(0x9e3779b97f4a7c15)
	d.tale.begin(d.now)
	d.tale.target = req.to.Name
	begun := false
	defer func() {
		if !begun {
			d.tale.outcome = outcomeBug
			d.end()
		}
	}()
	e := s.enter(req, life)
	d.log, d.seat = e.log, e.seat
	d.introduce()
	switch {
	case e.follow:
		d.tail, d.fx = &tail{f: relay.Follow(cfg, req.speaks, req.asks, d.now)}, &relay.Effects{}
		begun = true
		return d
	case e.said != nil:
		var err error
		if d.m, d.fx, err = relay.Resume(cfg, req.speaks, req.asks, e.said, d.now); err != nil {
			panic("BUG: proxy: a log that was read cannot be resumed: " + err.Error())
		}
	default:
		d.m, d.fx = relay.New(cfg, req.speaks, req.asks, plain, d.now)
	}
	if d.fx.Again {
		d.page = s.pageAgain(req)
	} else {
		d.page = s.turnPage(req)
	}
	d.observe()
	begun = true
	return d
}

// toHead drives until the response head is known; nil: there is nobody to send
// one to.
func (d *drive) toHead() (head *relay.Head) {
	defer d.guard(func() { head = d.broken() })
	for {
		d.persist()
		if d.fx.Head != nil {
			return d.fx.Head
		}
		d.attend()
		if d.fx.End != relay.Open {
			return nil
		}
		if d.advance(); d.leaving {
			_ = d.detach(nil)
			return nil
		}
	}
}

// pump performs what is due since toHead and drives to the end. An error means
// that the connection must be broken.
func (d *drive) pump(w io.Writer) (err error) {
	defer d.finish()
	defer d.guard(func() {
		_ = d.life.write(w, d.instead(bug))
		err = errAborted
	})
	for {
		if over, err := d.deliver(w); over {
			return err
		}
		if d.advance(); d.leaving {
			return d.detach(errAborted)
		}
		d.persist()
	}
}

// deliver performs what is due for the client, and what concerns the attempts. over: the
// response is, and err says whether the connection must be broken.
func (d *drive) deliver(w io.Writer) (over bool, err error) {
	if err := d.life.write(w, d.fx.Client); err != nil {
		if d.leaving || d.outlives() {
			return true, d.detach(err)
		}
		d.left()
		return true, err
	}
	if d.leaving {
		return true, d.detach(errAborted)
	}
	d.attend()
	switch d.fx.End {
	case relay.Open:
	case relay.Clean:
		return true, nil
	case relay.Abort:
		return true, errAborted
	}
	return false, nil
}

// step feeds the machine.
func (d *drive) step(in relay.Input) {
	d.fx = d.m.Step(d.now, in)
	d.observe()
}

// persist puts the log first: what leaves afterwards may rely on it. A turn that
// another claim has taken over says no more here.
func (d *drive) persist() {
	w := d.allowance()
	defer w.over()
	if m := d.fx.Memo; m != nil {
		d.srv.remember(d.req.under, d.srv.caller(d.req), d.srv.memos(d.req, d.told, m), &w)
	}
	// The checkpoint has the end of a turn before the ledger has it. Whoever dies between
	// the two leaves a turn that can be replayed, and who replays it tells the ledger;
	// the other way round the ledger had a batch that nobody could be given any more, so
	// that the turn was asked for anew and took its place. And a turn that has a newer
	// owner is his to tell. A checkpoint store that is slow must not make the ledger
	// late: it is told when half of the time is over.
	var first *lead
	if d.log != nil && d.tail == nil && d.page != nil && (d.fx.Turn != nil || d.fx.Answer) {
		first = w.lead()
	}
	told := d.chronicle(first)
	ours := d.tail != nil || d.log.persist(d.fx.Persist, &w)
	first.over(ours)
	if told != nil && ours && !w.waits(told) {
		d.srv.counts.unacked.Add(1)
	}
	if ours {
		if d.fx.Persist.Durable && !d.away && d.superseded(&w) {
			d.standBack()
		}
		return
	}
	cancel, ends := d.fx.Cancel, d.m.Done() || d.fx.Turn != nil
	if !d.m.Done() {
		d.step(relay.Stop{Reason: reasonFenced})
		cancel = d.fx.Cancel || cancel
		d.fx.Cancel, d.fx.Persist = cancel, relay.Persist{}
	}
	if !ends {
		return
	}
	// The machine has ended the turn; its end must not reach this client. Nor must a
	// terminator, which is what a turn that only waits for its own is stopped with.
	d.tale.outcome = reasonFenced
	d.fx = &relay.Effects{Cancel: cancel, End: relay.Abort, Client: d.instead(newer)}
}

// standBack keeps what would make the client act for a newer connection, and tells
// this one so. The turn goes on.
func (d *drive) standBack() {
	if d.folds() {
		d.fx = d.outdoneWhole()
		d.tale.outcome, d.tale.end = reasonFenced, relay.Abort
		return
	}
	if d.tail != nil {
		head := d.fx.Head
		d.fx = &relay.Effects{Head: head, End: relay.Abort, Client: d.instead(newer)}
		d.tale.outcome, d.tale.end = reasonFenced, relay.Abort
		return
	}
	d.fx.Client = d.instead(newer)
	d.leaving = true
}

// instead is an error for the client in place of what it was about to get.
func (d *drive) instead(f dialect.Failure) []byte {
	switch {
	case d.tail != nil:
		return d.tail.f.Instead(f)
	case d.m != nil:
		return d.m.Instead(f)
	}
	return d.req.speaks.Fail(nil, &turn.Snapshot{}, f)
}

const reasonFenced = "fenced"

// attend performs what concerns the attempts.
func (d *drive) attend() {
	if d.fx.Cancel {
		d.drop(d.fx.Settled)
		d.giveBack()
	}
	if a := d.fx.Open; a != nil {
		d.begin(a)
	}
}

// drop ends the current attempt. A settled one may keep its connection.
func (d *drive) drop(settled bool) {
	if o := d.open; o != nil {
		d.open = nil
		o.abandon()
	}
	if res := d.res; res != nil {
		d.res = nil
		d.life.reads(nil)
		if settled {
			d.srv.settle(res)
		} else {
			_ = res.Close()
		}
	}
}

// left is a write that failed: the client is gone, or does not read.
func (d *drive) left() {
	if d.tail != nil {
		d.fx = d.tail.f.Leave(time.Now())
		d.observe()
		return
	}
	if d.fx.Cancel || d.fx.End != relay.Open {
		d.drop(false)
	}
	if d.m.Done() {
		d.tale.outcome = "client_gone"
	} else {
		d.now = time.Now()
		d.step(relay.Gone{})
		d.drop(false)
	}
	if d.life.flags.Load()&flagSlow != 0 {
		d.tale.outcome = "slow_reader"
	}
}

// finish ends what the client's connection owns: everything, unless the turn goes
// on without it.
func (d *drive) finish() {
	if !d.away {
		d.end()
	}
}

// end lets go of everything, once.
func (d *drive) end() {
	if d.over {
		return
	}
	d.over = true
	d.drop(false)
	d.giveBack()
	if d.timer != nil {
		d.timer.Stop()
	}
	switch {
	case d.tale.outcome == outcomeBug:
	case d.tail != nil && !d.tail.f.Done() && d.tale.outcome != reasonFenced:
		d.left()
	case d.m != nil && !d.m.Done(): // nobody took the body: the head could not be written
		d.step(relay.Gone{})
	}
	if d.at != nil {
		d.at.guard.part()
	}
	whose := d.tale.whose()
	d.srv.counts.count(whose)
	if d.heard != nil {
		d.heard.End(Outcome{At: time.Now(), Whose: whose, Token: d.tale.outcome, Summary: d.tale.sum})
	}
	d.log.close(&d.tale)
	d.page.close(d.tale.unanswered() && !d.req.events)
	d.seat.leave()
	if d.outdone && d.tail == nil {
		d.srv.tidy(d.seat.at.key, d.srv.owner)
	}
	d.tale.tell(d.srv.cfg.Log, d.req)
	d.srv.release(d.life, d.req.who)
}

// bug is what a client is told of ours.
var bug = dialect.Failure{Cause: "internal", Reason: "bug", Status: 500, Message: "unbroken failed internally; its log says where"}

// outcomeBug is the outcome of a stream that panicked; its machine is not asked again.
const outcomeBug = "bug"

// guard turns a panic of one stream into that stream's honest end.
func (d *drive) guard(then func()) {
	if r := recover(); r != nil {
		d.tale.panicked(d.srv.cfg.Log, d.req, r)
		d.fx = &relay.Effects{}
		then()
	}
}

// broken is the head after a panic before it.
func (d *drive) broken() *relay.Head {
	status, body := d.req.speaks.ErrorBody(bug)
	h := &relay.Head{Status: status, ContentType: "application/json"}
	d.fx = &relay.Effects{Head: h, Client: body, Cancel: true, End: relay.Clean}
	return h
}
