package faultinject

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"unicode"
)

// turnState is what is remembered of one logical turn: a request and whatever
// repeats or continues it.
type turnState struct {
	attempts int
	whole    Answer // what the last fresh attempt meant to say
	prefill  string // the caller's own trailing prefill, if it had one
}

// turns is the memory of a server, shared by its requests.
type turns struct {
	mu   sync.Mutex
	byID map[string]*turnState
}

// task is a request once it is understood: what is to be said.
type task struct {
	key     string
	turnNo  int
	attempt int
	c       Continuation
	whole   Answer // the turn's whole answer
	rest    Answer // what is left of it, the same as whole if Fresh
}

// turnKey names a logical turn. A continuation has the key of the request it
// continues, because base is the prompt without the partial answer.
func turnKey(header string, base Prompt) (key string, turnNo int) {
	turnNo = 1
	for _, t := range base.Turns {
		if t.Role == "assistant" {
			turnNo++
		}
	}
	if header != "" { // possibly a client's constant header, the same for every turn
		return fmt.Sprintf("%s/%d", header, turnNo), turnNo
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d\x00%d", base.Dialect, base.question(), len(base.Turns), len(base.Tools)))
	return hex.EncodeToString(sum[:8]), turnNo
}

// teller computes the answer to a prompt that is the given attempt of the
// given turn of its conversation.
type teller func(p Prompt, attempt, turnNo int) Answer

// understand decides what a prompt asks for, counts the attempt, and remembers
// the turn. The whole answer of a turn is what its last fresh attempt meant to
// say: a continuation may lack the schema or the tools that led to it.
func (ts *turns) understand(header string, p Prompt, prefills bool, tell teller) task {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	manner, partial, base := mannerOf(p, prefills)
	t := ts.recall(header, base, tell)
	said := strings.TrimPrefix(partial.Text, t.state.prefill)
	ok := false
	switch {
	case p.Checkpoint > 0:
		t, ok = t.afterCheckpoint(p.Checkpoint), true
	case manner == Prefill:
		t, ok = t.afterPrefill(said, partial.Searches), true
	case manner == Asked:
		t, ok = t.afterAsking(said, partial.Searches, p.Turns[len(p.Turns)-1].Text)
	}
	if !ok { // the partial turn, if any, is history
		t = ts.recall(header, p, tell)
		t.rest, t.whole, t.state.whole = t.fresh, t.fresh, t.fresh
	}
	ts.byID[t.key] = t.state
	t.state.attempts = t.attempt
	return t.task
}

// recollection is a task in the making.
type recollection struct {
	task
	fresh Answer // what the prompt would be answered now
	state *turnState
}

// recall looks the turn of a prompt up, or begins it.
func (ts *turns) recall(header string, base Prompt, tell teller) recollection {
	var r recollection
	r.key, r.turnNo = turnKey(header, base)
	r.state = ts.byID[r.key]
	attempts := 0
	if r.state != nil {
		attempts = r.state.attempts
	}
	r.attempt = attempts + 1
	r.fresh = tell(base, r.attempt, r.turnNo)
	if r.state == nil {
		r.state = &turnState{whole: r.fresh}
	}
	r.whole = r.state.whole
	return r
}

// afterPrefill settles a request that ends in a partial answer. A prefill that
// is not how the answer begins is the caller's own: the model says its whole
// answer after it.
func (r recollection) afterPrefill(said string, searches int) recollection {
	if rest, ok := restTrimmed(r.whole, said); ok && (said != "" || searches > 0) {
		r.rest = rest.afterSearches(r.whole, searches)
		r.c = Continuation{Manner: Prefill, Said: said}
		return r
	}
	if r.attempt == 1 {
		r.state.prefill = said
	}
	r.rest = r.whole
	return r
}

// afterAsking settles a request whose last user turn follows a partial answer.
// It reports false if that is just the history of the next question: when the
// text is not the beginning of the answer, or is all of it and nothing asks to
// go on.
func (r recollection) afterAsking(said string, searches int, instruction string) (recollection, bool) {
	rest, ok := restTrimmed(r.whole, said)
	rest = rest.afterSearches(r.whole, searches)
	if !ok || said == "" && searches == 0 || rest.Text() == "" && !goOn.MatchString(instruction) {
		return r, false
	}
	r.rest = rest
	r.c = Continuation{Manner: Asked, Said: said}
	r.c.Anchor, r.c.Sentinel = readInstruction(said, instruction)
	return r, true
}

// afterCheckpoint settles a request that names how much of the answer's text
// the provider had already generated. Whoever checked the name knows it is ours.
func (r recollection) afterCheckpoint(n int) recollection {
	said := r.whole.Text()
	said = said[:min(n, len(said))]
	r.rest, _ = Rest(r.whole, said)
	r.c = Continuation{Manner: Resumed, Said: said}
	return r
}

// restTrimmed is Rest for text whose trailing whitespace may differ.
func restTrimmed(whole Answer, said string) (Answer, bool) {
	if rest, ok := Rest(whole, said); ok {
		return rest, true
	}
	return Rest(whole, strings.TrimRightFunc(said, unicode.IsSpace))
}

// begins reports whether text is how the unfinished answer of a turn begins.
func (ts *turns) begins(key, text string) bool {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	t := ts.byID[key]
	if t == nil {
		return false
	}
	_, ok := restTrimmed(t.whole, text)
	return ok
}

// done forgets a turn that was answered completely, so that the same request
// later counts from one again.
func (ts *turns) done(key string) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	delete(ts.byID, key)
}

func (ts *turns) reset() {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	ts.byID = map[string]*turnState{}
}
