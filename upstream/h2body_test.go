package upstream

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"
)

// numbers is a library's body: it yields count numbered bytes in reads of random sizes, empty
// ones among them, and its error with the last bytes or alone. A read behind the bytes of one
// that hangs blocks until the stream is canceled.
type numbers struct {
	rng         *rand.Rand
	count, most int
	at          int
	hangs       bool
	err         error
	ctx         context.Context
	closed      chan struct{}
}

func (s *numbers) Read(p []byte) (int, error) {
	n := min(len(p), s.rng.IntN(s.most+1), s.count-s.at)
	for i := range p[:n] {
		p[i] = numbered(s.at + i)
	}
	s.at += n
	switch {
	case s.at < s.count, n > 0 && s.rng.IntN(2) > 0:
		return n, nil
	case s.hangs:
		if n > 0 {
			return n, nil
		}
		<-s.ctx.Done()
		return 0, s.ctx.Err()
	}
	return n, s.err
}

func (s *numbers) Close() error { close(s.closed); return nil }

// numbered is byte i of a body: its period is no size of a buffer.
func numbered(i int) byte { return byte(i % 251) }

var errLastWord = errors.New("last word")

// TestH2BodyKeepsItsWord: whatever the sizes of reads, and whenever somebody wakes or
// closes: a chunk is what the provider sent there, and stays so until the next call; the last
// word comes behind the last byte, and again at each further call; and the pump ends.
func TestH2BodyKeepsItsWord(t *testing.T) {
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			ctx, cancel := context.WithCancel(t.Context())
			most := 1 << rng.IntN(17)
			s := &numbers{
				rng: rand.New(rand.NewPCG(seed, 8)), count: rng.IntN(16 * most), most: most,
				hangs: rng.IntN(3) == 0, err: []error{io.EOF, errLastWord}[rng.IntN(2)], ctx: ctx, closed: make(chan struct{}),
			}
			closesAt := -1 // how many bytes are read when another goroutine begins to close
			if s.hangs || rng.IntN(2) == 0 {
				closesAt = rng.IntN(s.count + 1)
			}
			b := newH2Body(s, &shared{host: &host{client: &Client{}}, cc: new(http2.ClientConn)}, &h2upload{}, cancel)
			var wg sync.WaitGroup
			got := 0
			var end error
			for closing := false; end == nil; {
				if rng.IntN(8) == 0 {
					wg.Go(b.wake)
				}
				if !closing && closesAt >= 0 && got >= closesAt {
					closing = true
					if rng.IntN(4) == 0 { // the reader itself, which does not come again, while the pump waits for it
						synctest.Wait()
						_ = b.close()
						wg.Wait()
						<-s.closed
						return
					}
					wg.Go(func() { _ = b.close() })
				}
				p, err := b.next()
				switch {
				case err == ErrWoken && len(p) == 0:
				case err != nil && len(p) == 0:
					end = err
				case err != nil || len(p) == 0:
					t.Fatalf("seed %d: %d bytes with %v", seed, len(p), err)
				}
				if rng.IntN(4) == 0 {
					synctest.Wait() // the pump is as far as it gets
				}
				for i, c := range p {
					if c != numbered(got+i) {
						t.Fatalf("seed %d: byte %d is not what was sent there", seed, got+i)
					}
				}
				got += len(p)
			}
			wg.Wait()
			e := new(Error)
			switch kind := errors.As(end, &e); {
			case kind && e.Kind == Canceled && closesAt >= 0:
			case closesAt >= 0 && got < closesAt, got != s.count:
				t.Errorf("seed %d: %v behind %d of %d bytes", seed, end, got, s.count)
			case s.err == io.EOF && end != io.EOF, s.err != io.EOF && !errors.Is(end, s.err), s.hangs:
				t.Errorf("seed %d: the last word is %v, want %v", seed, end, s.err)
			}
			_ = b.close()
			<-s.closed // else the pump has not ended
			if b.woken {
				if _, err := b.next(); err != ErrWoken {
					t.Errorf("seed %d: a wake was lost to the end: %v", seed, err)
				}
			}
			if p, err := b.next(); len(p) > 0 || err != end {
				t.Errorf("seed %d: the end was %v, and then %d bytes and %v", seed, end, len(p), err)
			}
		})
	}
}
