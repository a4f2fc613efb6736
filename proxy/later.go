package proxy

import (
	"context"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/relay"
)

const (
	// recallWait bounds what looking back may cost a request, over all looks.
	recallWait = 50 * time.Millisecond
	// recallMost bounds how many calls one request is looked up for, newest first.
	recallMost = 4096
	// knownFor is how long a caller is taken for one that something is kept for,
	// after the store said so.
	knownFor = 10 * time.Minute
)

// The kinds of memos.
const (
	memoAny  = "any"  // something is kept for the caller
	memoHint = "hint" // words about calls that R2 took out: dialect, past, call
	memoTurn = "turn" // a spliced turn: dialect, id
	memoItem = "item" // an item of one: dialect, id
)

// recall is what is remembered for later requests of a conversation (DESIGN §6). A
// store that others share is asked last; what this process knows it knows without.
type recall struct {
	own   *checkpoint.Memory
	store checkpoint.Memos // nil: there is no other
	wait  time.Duration    // recallWait, but in tests
}

func newRecall(store checkpoint.Store) recall {
	if m, ok := store.(*checkpoint.Memory); ok {
		return recall{own: m, wait: recallWait}
	}
	rc := recall{own: checkpoint.NewMemory(checkpoint.MemoryConfig{Clock: time.Now}), wait: recallWait}
	rc.store, _ = store.(checkpoint.Memos)
	return rc
}

// remember keeps memos for a caller. The shared store has them, or the time is over,
// when it returns: the next request may go to another process.
func (s *Server) remember(t *terms, who checkpoint.Scope, memos []checkpoint.Memo, w *allowance) {
	if len(memos) == 0 {
		return
	}
	memos = append(memos, checkpoint.Memo{Key: checkpoint.MemoOf(who, memoAny), Value: []byte{1}})
	rc := &s.recall
	if err := rc.own.Remember(context.Background(), t.cfg.Remember, memos...); err != nil {
		s.counts.unremembered.Add(1)
		s.cfg.Log.Warn("a turn is not remembered for later requests", "error", err.Error())
		return
	}
	if rc.store == nil {
		return
	}
	done := make(chan struct{})
	s.behind(func(ctx context.Context) {
		defer close(done)
		if rc.store.Remember(ctx, t.cfg.Remember, memos...) != nil {
			s.counts.unremembered.Add(1)
		}
	})
	if !w.waits(done) {
		s.counts.unacked.Add(1)
	}
}

// look looks back for one caller.
type look struct {
	*recall
	who checkpoint.Scope
	ctx context.Context
}

// any reports whether anything is kept for the caller.
func (l look) any() bool {
	key := checkpoint.MemoOf(l.who, memoAny)
	if own, err := l.own.Recall(context.Background(), key); err == nil && own[0] != nil {
		return true
	}
	if l.store == nil {
		return false
	}
	shared, err := l.store.Recall(l.ctx, key)
	if err != nil || shared[0] == nil {
		return false
	}
	_ = l.own.Remember(context.Background(), knownFor, checkpoint.Memo{Key: key, Value: shared[0]}) // or it is asked for again
	return true
}

// values returns what is kept under keys, nil where there is nothing, or where the
// store did not answer.
func (l look) values(keys []checkpoint.MemoKey) [][]byte {
	values, err := l.own.Recall(context.Background(), keys...)
	if err != nil {
		values = make([][]byte, len(keys))
	}
	if l.store == nil {
		return values
	}
	var missing []checkpoint.MemoKey
	var at []int
	for i, v := range values {
		if v == nil {
			missing, at = append(missing, keys[i]), append(at, i)
		}
	}
	if len(missing) == 0 {
		return values
	}
	if shared, err := l.store.Recall(l.ctx, missing...); err == nil {
		for i, v := range shared {
			values[at[i]] = v
		}
	}
	return values
}

// later does for a request what earlier turns of its conversation left to be done:
// reasoning under the drop mark is taken out, calls that R2 took out are told of, and
// a turn that only Unbroken knows is put in the place of its id. It returns the body
// to send, in the client's own bytes where nothing is to be done.
//
// asked is the same before ids were expanded: what a later turn builds on.
func (s *Server) later(r *request) (plain, asked []byte) {
	asked = r.speaks.Repair(r.plain)
	teller, answers := r.speaks.(dialect.Historian)
	answers = answers && teller.Answers(r.plain)
	r.answers = answers
	named := ""
	var refers []string
	heir, inherits := r.speaks.(dialect.Lineage)
	if inherits {
		named, refers = heir.Named(r.plain), heir.Refers(r.plain)
	}
	if !answers && named == "" && len(refers) == 0 {
		return asked, asked
	}
	who := s.caller(r)
	if who == (checkpoint.Scope{}) {
		return asked, asked
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.recall.wait)
	defer cancel()
	l := look{&s.recall, who, ctx}
	if !l.any() {
		return asked, asked
	}
	if answers {
		if hinted := l.hint(teller, r, asked); hinted != nil {
			s.counts.hinted.Add(1)
			asked = hinted
		}
	}
	expanded := false
	if len(refers) > 0 {
		asked, expanded = l.inline(heir, r, asked, refers)
	}
	plain = asked
	if named != "" {
		if whole := l.expand(heir, r, asked, named); whole != nil {
			plain, expanded = whole, true
		}
	}
	if expanded {
		s.counts.expanded.Add(1)
	}
	return plain, asked
}

// hint puts notes into a body whose history holds turns that R2 ended; nil: there is
// none. The history is read as the client sent it, the places are those of the body
// that goes upstream; what Repair takes out is in front of no call and no result.
func (l look) hint(d dialect.Historian, r *request, body []byte) []byte {
	told := d.History(r.plain).Rounds
	places := told
	if &body[0] != &r.plain[0] {
		if places = d.History(body).Rounds; len(places) != len(told) {
			return nil
		}
	}
	var keys []checkpoint.MemoKey
	var of []int // the round of each key
	for i := len(told) - 1; i >= 0 && len(keys) < recallMost; i-- {
		for _, call := range told[i].Calls {
			keys, of = append(keys, hintKey(l.who, r.speaks, told[i].Before, call)), append(of, i)
		}
	}
	words := map[int]string{}
	for i, v := range l.values(keys) {
		if v != nil && words[of[i]] == "" {
			words[of[i]] = string(v)
		}
	}
	var edits []jsonwalk.Patch
	for i := range places {
		if w := words[i]; w != "" && places[i].Note.At > 0 {
			edits = append(edits, places[i].Note.Insert(w))
		}
	}
	if len(edits) == 0 {
		return nil
	}
	return jsonwalk.ApplySorted(body, edits)
}

func hintKey(who checkpoint.Scope, d dialect.Dialect, before dialect.Past, call string) checkpoint.MemoKey {
	return checkpoint.MemoOf(who, memoHint, d.Name(), string(before[:]), call)
}

// memos are what is to be remembered of a turn of request r, whose body was asked.
func (s *Server) memos(r *request, asked []byte, m *relay.Memo) (memos []checkpoint.Memo) {
	who := s.caller(r)
	if who == (checkpoint.Scope{}) {
		return nil
	}
	id := ""
	if heir, ok := r.speaks.(dialect.Lineage); ok {
		left := heir.Keep(asked, m.Said)
		if id = left.ID; len(left.Turn) > r.under.cfg.MaxKept {
			s.counts.unremembered.Add(1)
		} else if id != "" {
			memos = bequest(who, r.speaks, left)
		}
	}
	teller, ok := r.speaks.(dialect.Historian)
	if !ok || len(m.Interrupted) == 0 {
		return memos
	}
	pasts := []dialect.Past{teller.History(r.plain).Now}
	if id != "" {
		pasts = append(pasts, dialect.After(id))
	}
	words := []byte(dialect.Hint(m.Interrupted))
	for _, past := range pasts {
		for _, call := range m.Calls {
			memos = append(memos, checkpoint.Memo{Key: hintKey(who, r.speaks, past, call), Value: words})
		}
	}
	return memos
}
