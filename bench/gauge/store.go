package gauge

import (
	"errors"
	"net"
	"sync"
	"time"
)

// StoreState is how the Redis of a proxy fares under load.
type StoreState string

// The states. Of a slow store every answer comes [slowness] later; of one that is down every
// connection is reset, and so are new ones.
const (
	StoreHealthy StoreState = "healthy"
	StoreSlow    StoreState = "slow"
	StoreDown    StoreState = "down"
)

// slowness is how much later a slow store's answers come: a hundred times as long as a
// healthy one takes, and still an answer.
const slowness = 200 * time.Millisecond

var storeStates = []StoreState{StoreHealthy, StoreSlow, StoreDown}

func (s StoreState) peer() string { return "redis-" + string(s) }

// stores are the peers of the store's scenarios: one proxy, whose Redis changes for the worse
// when the load flows.
func stores(binary string) (all []Peer) {
	for _, state := range storeStates {
		all = append(all, unbroken(state.peer(), binary, "http", "redis", state))
	}
	return all
}

// shim is a port in front of a store that can make it slow, or take it away.
type shim struct {
	l  net.Listener
	to string
	wg sync.WaitGroup

	mu    sync.Mutex
	state StoreState
	open  map[net.Conn]struct{} // both sides
}

func newShim(to string) (*shim, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &shim{l: l, to: to, state: StoreHealthy, open: map[net.Conn]struct{}{}}
	s.wg.Go(s.accept)
	return s, nil
}

func (s *shim) addr() string { return s.l.Addr().String() }

// become changes the state, of open connections too.
func (s *shim) become(state StoreState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
	if state == StoreDown {
		s.reset()
	}
}

func (s *shim) close() {
	s.become(StoreDown)
	_ = s.l.Close()
	s.wg.Wait()
}

// reset ends every connection. mu is held.
func (s *shim) reset() {
	for c := range s.open {
		_ = c.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	}
	clear(s.open)
}

// now is the state, and hold takes connections in as long as it allows any.
func (s *shim) now() StoreState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

func (s *shim) hold(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[c] = struct{}{}
	if s.state == StoreDown {
		s.reset()
		return false
	}
	return true
}

func (s *shim) drop(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
	_ = c.Close()
}

func (s *shim) accept() {
	for {
		c, err := s.l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || !s.hold(c) {
			continue
		}
		s.wg.Go(func() { s.join(c) })
	}
}

// join carries bytes both ways until one side ends.
func (s *shim) join(c net.Conn) {
	defer s.drop(c)
	r, err := net.Dial("tcp", s.to)
	if err != nil || !s.hold(r) {
		return
	}
	defer s.drop(r)
	s.wg.Go(func() {
		defer s.drop(r)
		s.carry(r, c, false)
	})
	s.carry(c, r, true)
}

// parcel is what one read brought, and when it may go on.
type parcel struct {
	due  time.Time
	data []byte
}

// carry copies from one side to the other; answers are late while the store is slow, and
// come as fast after one another as they were given.
func (s *shim) carry(to, from net.Conn, answers bool) {
	queue := make(chan parcel, 1024)
	s.wg.Go(func() {
		defer func() {
			_ = to.Close()
			for range queue { // so that the reader gets to its end
			}
		}()
		for p := range queue {
			time.Sleep(time.Until(p.due))
			if _, err := to.Write(p.data); err != nil {
				return
			}
		}
	})
	defer close(queue)
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			p := parcel{data: append([]byte(nil), buf[:n]...)}
			if answers && s.now() == StoreSlow {
				p.due = time.Now().Add(slowness)
			}
			queue <- p
		}
		if err != nil {
			return
		}
	}
}
