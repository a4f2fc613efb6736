package redisstore

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/checkpoint/storetest"
)

// open opens a store that ends with the test. Deadlines are longer than in
// production, where what is slow counts as broken: a busy test machine is slow.
func open(t *testing.T, url string, set func(*Config)) *Store {
	t.Helper()
	o, err := ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Server: o, Timeout: 30 * time.Second, Grace: -1, Retry: 20 * time.Millisecond, Flush: 2 * time.Millisecond}
	if set != nil {
		set(&c)
	}
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.Close(ctx)
	})
	return s
}

// mortal lets the owners of a store die. Their heartbeat is slower than a test.
type mortal struct{ *Store }

func (m mortal) Die(o checkpoint.Owner) {
	m.lives.mu.Lock()
	delete(m.lives.owners, o)
	m.lives.mu.Unlock()
	_ = m.client().Del(context.Background(), m.keys.live(o)).Err()
}

func lasting(c *Config) { c.Renew, c.LiveTTL = time.Hour, 2*time.Hour }

func TestMiniredisPassesTheBattery(t *testing.T) {
	storetest.Run(t, func(t *testing.T) checkpoint.Store {
		return mortal{open(t, "redis://"+miniredis.RunT(t).Addr(), lasting)}
	})
}

func TestRedisPassesTheBattery(t *testing.T) {
	srv := startRedis(t)
	storetest.Run(t, func(t *testing.T) checkpoint.Store {
		srv.do("FLUSHALL")
		srv.do("SCRIPT", "FLUSH") // every test meets unknown scripts
		return mortal{open(t, srv.url(), lasting)}
	})
}

// key makes the key of a turn.
func key(run string) checkpoint.TurnKey {
	return checkpoint.Turn(checkpoint.Scope{9}, checkpoint.RunID(run), checkpoint.Fingerprint{9})
}

func head(run string) checkpoint.Record {
	return checkpoint.Record{Run: checkpoint.RunID(run), Dialect: "chat", Model: "model"}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

// held is a turn with its writer and what it was told.
type held struct {
	checkpoint.Writer
	fence checkpoint.Fence
	at    int64
	lost  chan error
}

const me checkpoint.Owner = "me"

func hold(t *testing.T, s *Store, run string, o checkpoint.Owner) *held {
	t.Helper()
	f, r, err := s.Claim(t.Context(), key(run), o, head(run))
	must(t, err)
	if r == nil {
		h := head(run)
		r = &h
	}
	h := &held{fence: f, at: int64(len(r.Log)), lost: make(chan error, 1)}
	h.Writer = s.Hold(f, o, *r, func(err error) { h.lost <- err })
	return h
}

func (h *held) say(p string) {
	h.Append(h.at, []byte(p))
	h.at += int64(len(p))
}

func (h *held) sync(t *testing.T) {
	t.Helper()
	must(t, h.Sync(t.Context()))
}

func logOf(t *testing.T, s *Store, run string) string {
	t.Helper()
	r, err := s.Get(t.Context(), key(run))
	must(t, err)
	return string(r.Log)
}

// journal collects log lines.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, string(p))
	return len(p), nil
}

func (j *journal) count(word string) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, l := range j.lines {
		if strings.Contains(l, word) {
			n++
		}
	}
	return n
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

func TestTimesToLive(t *testing.T) {
	m := miniredis.RunT(t)
	s := open(t, "redis://"+m.Addr(), lasting)
	f, _, err := s.Claim(t.Context(), key("run"), me, head("run"))
	must(t, err)
	must(t, s.Append(t.Context(), f, 0, []byte("abc")))
	k := s.keys.turn(key("run"))
	ttls := func(want time.Duration) {
		t.Helper()
		for _, name := range k[:2] {
			if got := m.TTL(name); got != want {
				t.Errorf("%s lives for %v, want %v", name, got, want)
			}
		}
	}
	ttls(time.Hour)
	m.FastForward(59 * time.Minute)
	must(t, s.Append(t.Context(), f, 3, nil)) // renews
	ttls(time.Hour)
	must(t, s.Mark(t.Context(), f, checkpoint.State{Phase: checkpoint.Finished, Seen: 3}))
	ttls(time.Minute)
	must(t, s.Append(t.Context(), f, 3, []byte("d"))) // does not bring the hour back
	ttls(time.Minute)
	m.FastForward(time.Minute - time.Millisecond)
	// A replay, whose client left, makes it neither live longer nor another thing.
	again, _, err := s.Claim(t.Context(), key("run"), me, checkpoint.Record{})
	must(t, err)
	must(t, s.Mark(t.Context(), again, checkpoint.State{Phase: checkpoint.Abandoned}))
	must(t, s.Release(t.Context(), again))
	if r, err := s.Get(t.Context(), key("run")); err != nil || r.State.Phase != checkpoint.Finished {
		t.Errorf("after a replay: %+v, %v", r, err)
	}
	ttls(time.Millisecond)
	m.FastForward(time.Millisecond)
	_, err = s.Get(t.Context(), key("run"))
	want(t, err, checkpoint.ErrNotFound)
	f = again
	// A process that slept through all this is still told that it is late.
	g, r, err := s.Claim(t.Context(), key("run"), me, head("run"))
	must(t, err)
	if r != nil || g.N <= f.N {
		t.Fatalf("after expiry: fence %d after %d, record %+v", g.N, f.N, r)
	}
	must(t, s.Mark(t.Context(), g, checkpoint.State{Phase: checkpoint.Finished}))
	m.FastForward(2 * time.Minute)
	want(t, s.Append(t.Context(), f, 0, []byte("x")), checkpoint.ErrFenced)
	m.FastForward(time.Hour)
	for _, name := range m.Keys() {
		if !strings.Contains(name, "live:") {
			t.Errorf("%s stays for ever", name)
		}
	}
}

func TestForeignAndDamagedKeys(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(m *miniredis.Miniredis, k []string)
		want   error
	}{
		{"another type", func(m *miniredis.Miniredis, k []string) { _ = m.Set(k[0], "hello") }, checkpoint.ErrCorrupt},
		{"a hash of somebody else's", func(m *miniredis.Miniredis, k []string) { m.HSet(k[0], "name", "x") }, checkpoint.ErrCorrupt},
		{"a truncated log", func(m *miniredis.Miniredis, k []string) { _ = m.Set(k[1], "ab") }, checkpoint.ErrCorrupt},
		{"an evicted log", func(m *miniredis.Miniredis, k []string) { m.Del(k[1]) }, checkpoint.ErrCorrupt},
		{"a damaged identity", func(m *miniredis.Miniredis, k []string) { m.HSet(k[0], "h", "\x01garbage") }, checkpoint.ErrCorrupt},
		{"a damaged state", func(m *miniredis.Miniredis, k []string) { m.HSet(k[0], "s", "\x01") }, checkpoint.ErrCorrupt},
		{"a time that is none", func(m *miniredis.Miniredis, k []string) { m.HSet(k[0], "c", "yesterday") }, checkpoint.ErrCorrupt},
		{"a newer release", func(m *miniredis.Miniredis, k []string) { m.HSet(k[0], "h", "\x02new") }, checkpoint.ErrVersion},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := miniredis.RunT(t)
			s := open(t, "redis://"+m.Addr(), lasting)
			f, _, err := s.Claim(t.Context(), key("run"), me, head("run"))
			must(t, err)
			must(t, s.Append(t.Context(), f, 0, []byte("abc")))
			must(t, s.Release(t.Context(), f))
			if k := s.keys.turn(key("run")); c.name == "another type" || c.name == "a hash of somebody else's" {
				m.Del(k[0])
				c.damage(m, k)
			} else {
				c.damage(m, k)
			}
			_, err = s.Get(t.Context(), key("run"))
			want(t, err, c.want)
			_, _, err = s.Claim(t.Context(), key("run"), me, head("run"))
			want(t, err, c.want)
			_, _, err = s.Follow(t.Context(), key("run"), 0)
			want(t, err, c.want)
			if s.Stats().Away {
				t.Error("somebody else's key is no outage")
			}
		})
	}
}

// The newer release's record must be as it was: its owner goes on with it.
func TestANewerRecordIsLeftAlone(t *testing.T) {
	m := miniredis.RunT(t)
	s := open(t, "redis://"+m.Addr(), lasting)
	f, _, err := s.Claim(t.Context(), key("run"), me, head("run"))
	must(t, err)
	k := s.keys.turn(key("run"))
	m.HSet(k[0], "s", "\x09state")
	_, _, err = s.Claim(t.Context(), key("run"), me, head("run"))
	want(t, err, checkpoint.ErrVersion)
	if got := m.HGet(k[0], "f"); got != number(f.N) {
		t.Errorf("the fence is %s now, it was %d", got, f.N)
	}
}

// A log of many answers' size is read whole, and no command is as large.
func TestALongLogIsReadInParts(t *testing.T) {
	s := open(t, "redis://"+miniredis.RunT(t).Addr(), lasting)
	f, _, err := s.Claim(t.Context(), key("run"), me, head("run"))
	must(t, err)
	part := strings.Repeat("0123456789abcdef", readChunk/16-7)
	must(t, s.Append(t.Context(), f, 0, []byte(part)))
	must(t, s.Append(t.Context(), f, int64(len(part)), []byte(part)))
	must(t, s.Append(t.Context(), f, 2*int64(len(part)), []byte("end")))
	whole := part + part + "end"
	if logOf(t, s, "run") != whole {
		t.Error("get: another log")
	}
	_, _, err = s.Claim(t.Context(), key("run"), "other", head("run"))
	want(t, err, checkpoint.ErrOwned)
	_, r, err := s.Claim(t.Context(), key("run"), me, head("run"))
	must(t, err)
	if string(r.Log) != whole {
		t.Error("claim: another log")
	}
}

func TestAFenceIsNotBehindRedisTime(t *testing.T) {
	m := miniredis.RunT(t)
	s := open(t, "redis://"+m.Addr(), lasting)
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	m.SetTime(now)
	f, _, err := s.Claim(t.Context(), key("run"), me, head("run"))
	must(t, err)
	if f.N != uint64(now.UnixMicro()) {
		t.Errorf("fence %d, the time is %d", f.N, now.UnixMicro())
	}
	// Redis forgets all, and its clock went back an hour: only a memory of the
	// fence helps, which Redis has until then.
	m.SetTime(now.Add(-time.Hour))
	g, _, err := s.Claim(t.Context(), key("run"), me, head("run"))
	must(t, err)
	if g.N != f.N+1 {
		t.Errorf("fence %d after %d", g.N, f.N)
	}
}

func TestOpenRefusesNonsense(t *testing.T) {
	for name, c := range map[string]Config{
		"no server":             {},
		"no address":            {Server: &redis.UniversalOptions{}},
		"renewed after its end": {Server: &redis.UniversalOptions{Addrs: []string{"127.0.0.1:1"}}, Renew: time.Minute},
	} {
		if s, err := Open(c); err == nil {
			s.Close(t.Context())
			t.Errorf("%s: accepted", name)
		}
	}
}
