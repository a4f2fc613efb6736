package proxy

import (
	"sync"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// turns is what this process has in hand, by turn, so that the connections of one
// turn find each other. Who comes to a turn takes a seat at it; the newest one gets
// what makes a client act.
type turns struct {
	mu  sync.Mutex
	all map[checkpoint.TurnKey]*atHand
}

// atHand is one turn; turns.mu guards it.
type atHand struct {
	key    checkpoint.TurnKey
	seats  int
	newest *seat
	driver *seat         // who carries it on; nil: nobody in this process
	news   chan struct{} // closed when there is some; nil: nobody waits
}

// seat is one connection's place at a turn.
type seat struct {
	// immutable
	of  *turns
	at  *atHand
	log *journal

	left bool // of.mu
}

// sit takes a seat, the newest now. drives: nobody had the turn, and it is this
// one's to carry on.
func (t *turns) sit(key checkpoint.TurnKey, log *journal) (s *seat, drives bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.all[key]
	if a == nil {
		a = &atHand{key: key}
		t.all[key] = a
	}
	s = &seat{of: t, at: a, log: log}
	a.seats++
	a.newest = s
	if a.driver == nil {
		a.driver, drives = s, true
	}
	return s, drives
}

// newest reports whether nobody of this process came to the turn later.
func (s *seat) newest() bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return s.at.newest == s
}

// driven reports whether another connection of this process carries the turn on.
func (s *seat) driven() bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return s.at.driver != nil && s.at.driver != s
}

// blind reports whether another connection of this process carries the turn on
// without a checkpoint that could be followed.
func (s *seat) blind() bool {
	s.of.mu.Lock()
	d := s.at.driver
	s.of.mu.Unlock()
	return d != nil && d != s && d.log.isLost()
}

// drive makes this one the driver, unless there is another.
func (s *seat) drive() bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.at.driver == nil {
		s.at.driver = s
	}
	return s.at.driver == s
}

// oust takes the turn from its driver, which has no checkpoint that anybody could
// follow.
func (s *seat) oust() {
	s.of.mu.Lock()
	old := s.at.driver
	s.at.driver = s
	s.of.mu.Unlock()
	if old != nil && old != s {
		old.log.stop(reasonFenced)
	}
}

// yield gives the driving up.
func (s *seat) yield() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.at.driver == s {
		s.at.driver = nil
		s.at.tell()
	}
}

// tell wakes who follows the turn.
func (s *seat) tell() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.at.tell()
}

func (a *atHand) tell() {
	if a.news != nil {
		close(a.news)
		a.news = nil
	}
}

// news is closed when there is something new to read. It is asked for before
// reading.
func (s *seat) news() <-chan struct{} {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.at.news == nil {
		s.at.news = make(chan struct{})
	}
	return s.at.news
}

// leave gives the seat up, once.
func (s *seat) leave() {
	if s == nil {
		return
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	if s.left {
		return
	}
	s.left = true
	a := s.at
	if a.driver == s {
		a.driver = nil
	}
	a.tell()
	if a.seats--; a.seats == 0 {
		delete(s.of.all, a.key)
	}
}
