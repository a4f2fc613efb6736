package redisstore

import "github.com/unbroken-llm/unbroken/checkpoint"

// The most of one script call. Redis does nothing else meanwhile, and what is done there
// for one turn takes about 5 µs.
const (
	scriptTurns = 64
	scriptBytes = writeChunk
)

// portion is what is appended to one turn's log.
type portion struct {
	keys   []string // of the turn
	fence  checkpoint.Fence
	offset int64
	p      string
	renew  bool // the record's time to live begins anew
}

// appending makes one script call of several portions. They are read until Redis has them,
// and numbers and keys are handed over as pointers: boxed, a stream that says a word a
// second would pay more for the boxes than for the word.
func (s *Store) appending(portions []portion) *step {
	st := &step{script: appendScript, line: make([]any, 3, 5+7*len(portions))}
	st.line[2] = 3 * len(portions)
	for i := range portions {
		k := portions[i].keys
		st.line = append(st.line, &k[0], &k[1], &k[2])
	}
	st.line[3] = portions[0].keys[0] // go-redis finds the node by it
	st.line = append(st.line, s.cfg.MaxTurn, s.cfg.TTL.Milliseconds())
	for i := range portions {
		a := &portions[i]
		renew := ""
		if a.renew {
			renew = "1"
		}
		st.line = append(st.line, &a.fence.N, &a.offset, &a.p, renew)
	}
	return st
}

// portion reads the outcome of the i-th portion, and the size of its log where that
// matters.
func (r reply) portion(i int) (outcome, int64) {
	if o := r.outcome(); o != done {
		return o, 0
	}
	for at := 1; at+2 < len(r); at += 3 {
		if n, _ := r[at].(int64); n == int64(i)+1 {
			o, _ := r[at+1].(int64)
			size, _ := r[at+2].(int64)
			return outcome(o), size
		}
	}
	return done, 0
}

// fits returns how many of portions the next script call takes.
func (s *Store) fits(portions []portion) int {
	most := scriptTurns
	if s.apart.Load() {
		most = 1
	}
	n, bytes := 0, 0
	for n < len(portions) && n < most && (n == 0 || bytes+len(portions[n].p) <= scriptBytes) {
		bytes += len(portions[n].p)
		n++
	}
	return n
}
