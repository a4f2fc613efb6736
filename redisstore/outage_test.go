package redisstore

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// brisk is a store as in production, but quicker to notice and to look again.
func brisk(c *Config) {
	c.Timeout = 100 * time.Millisecond
	c.Retry, c.Renew = 20*time.Millisecond, 50*time.Millisecond
	c.LiveTTL = 30 * time.Second // our machine may be slow; lives have tests of their own
}

// outage is one way in which a real Redis fails. stop begins it, and start ends it.
var outages = []struct {
	name        string
	args        []string
	stop, start func(*server)
}{
	{"frozen", nil, (*server).freeze, (*server).thaw},
	{"killed, forgetting all", nil, (*server).kill, (*server).start},
	{"killed, remembering all", []string{"--appendonly", "yes", "--appendfsync", "always"}, (*server).kill, (*server).start},
	{"restarted with a snapshot", nil, func(s *server) { s.do("SAVE"); s.kill() }, (*server).start},
	{"full", nil, func(s *server) { s.do("CONFIG", "SET", "maxmemory", "1mb") }, func(s *server) { s.do("CONFIG", "SET", "maxmemory", "0") }},
	{"a replica now", nil, func(s *server) { s.do("REPLICAOF", "127.0.0.1", "1") }, func(s *server) { s.do("REPLICAOF", "NO", "ONE") }},
	{"without our rights", nil, func(s *server) { s.do("ACL", "SETUSER", "default", "-evalsha", "-eval", "-set") }, func(s *server) { s.do("ACL", "SETUSER", "default", "+@all") }},
}

// An outage costs the streams nothing but protection, and what they said meanwhile
// is written when Redis is back.
func TestOutages(t *testing.T) {
	for _, o := range outages {
		t.Run(o.name, func(t *testing.T) {
			srv := startRedis(t, o.args...)
			var log journal
			s := open(t, srv.url(), func(c *Config) { brisk(c); c.Log = log.logger() })
			var h *held
			until(t, "claimed", func() bool { // the first dial may be slow
				f, _, err := s.Claim(t.Context(), key("run"), me, head("run"))
				if err == nil {
					h = &held{fence: f, lost: make(chan error, 1)}
					h.Writer = s.Hold(f, me, head("run"), func(err error) { h.lost <- err })
				}
				return err == nil
			})
			h.say("before ")
			until(t, "written", func() bool { return h.Sync(t.Context()) == nil })

			o.stop(srv)
			n := 0
			until(t, "away", func() bool {
				h.say("during ")
				n++
				return s.Stats().Away && log.count("away:") > log.count("is back")
			})
			// Now nothing is even tried.
			failures := s.Stats().Commands
			for range 1000 {
				h.say("during ")
				n++
				want(t, h.Sync(t.Context()), checkpoint.ErrUnavailable)
				_, _, err := s.Claim(t.Context(), key("other"), me, head("other"))
				want(t, err, checkpoint.ErrUnavailable)
			}
			if got := s.Stats().Commands; got != failures {
				t.Errorf("%d commands were sent to a Redis that is away", got-failures)
			}

			o.start(srv)
			until(t, "back", func() bool { return log.count("is back") > 0 })
			until(t, "written", func() bool { return h.Sync(t.Context()) == nil })
			h.say("after")
			until(t, "written", func() bool { return h.Sync(t.Context()) == nil })
			var r *checkpoint.Record
			until(t, "read", func() bool {
				var err error
				r, err = s.Get(t.Context(), key("run"))
				return err == nil
			})
			if string(r.Log) != "before "+strings.Repeat("during ", n)+"after" || r.Owner != me {
				t.Errorf("%d bytes, owner %q", len(r.Log), r.Owner)
			}
			if st := s.Stats(); st.Drops != 0 || st.Fenced != 0 {
				t.Errorf("%+v", st)
			}
			// On a busy machine Redis may also have been slower than it is waited for.
			until(t, "every absence ends", func() bool { return log.count("away:") == log.count("is back") })
			if changes := log.count("away:") + log.count("is back"); log.count("level=") != changes {
				t.Errorf("it logged more than %d changes: %q", changes, log.lines)
			}
			select {
			case err := <-h.lost:
				t.Errorf("lost: %v", err)
			default:
			}
		})
	}
}

// A server that sleeps for less than the deadlines of a few flushes is not away
// for long, and whatever it does on waking is done once.
func TestDebugSleep(t *testing.T) {
	srv := startRedis(t)
	s := open(t, srv.url(), brisk)
	var h *held
	until(t, "reached", func() bool { _, err := s.Secret(t.Context(), "x", []byte("x")); return err == nil })
	h = hold(t, s, "run", me)
	asleep := make(chan struct{})
	go func() {
		defer close(asleep)
		c := srv.client()
		defer func() { _ = c.Close() }()
		_ = c.Do(context.Background(), "DEBUG", "SLEEP", "0.5").Err()
	}()
	n := 0
	for done := false; !done; {
		select {
		case <-asleep:
			done = true
		case <-time.After(time.Millisecond):
		}
		h.say("word ")
		n++
	}
	until(t, "written", func() bool { return h.Sync(t.Context()) == nil })
	until(t, "read", func() bool { _, err := s.Get(t.Context(), key("run")); return err == nil })
	if got := logOf(t, s, "run"); got != strings.Repeat("word ", n) {
		t.Errorf("%d bytes, want %d", len(got), 5*n)
	}
}

// A start without Redis works, and protection begins when it comes.
func TestRedisComesLate(t *testing.T) {
	srv := startRedis(t)
	srv.kill()
	s := open(t, srv.url(), brisk)
	until(t, "away", func() bool { return s.Stats().Away })
	srv.start()
	until(t, "claimed", func() bool { _, _, err := s.Claim(t.Context(), key("run"), me, head("run")); return err == nil })
}

// The life of a process that is killed ends by itself, and then its turns may be
// claimed; it may not be before.
func TestTheDeadAreFoundOut(t *testing.T) {
	srv := startRedis(t)
	fast := func(c *Config) {
		c.Renew, c.LiveTTL, c.Grace = 20*time.Millisecond, 400*time.Millisecond, 0
	}
	first := open(t, srv.url(), fast)
	second := open(t, srv.url(), fast)
	h := hold(t, first, "run", "first")
	h.say("said")
	h.sync(t)
	_, _, err := second.Claim(t.Context(), key("run"), "second", head("run"))
	want(t, err, checkpoint.ErrOwned)
	// kill -9: the heartbeat stops and nobody gives the life up.
	close(first.stop)
	first.work.Wait()
	var r *checkpoint.Record
	until(t, "taken over", func() bool {
		_, r, err = second.Claim(t.Context(), key("run"), "second", head("run"))
		return err == nil
	})
	if string(r.Log) != "said" || r.Owner != "first" {
		t.Errorf("%+v", r)
	}
	want(t, first.Append(t.Context(), h.fence, 4, []byte("x")), checkpoint.ErrFenced)
	first.stop = make(chan struct{}) // for Close
}

// A full Redis takes nothing, but it must not kill the owners, whose turns
// nobody could write: a life is prolonged without memory.
func TestAFullRedisKillsNobody(t *testing.T) {
	srv := startRedis(t)
	s := open(t, srv.url(), func(c *Config) { c.Renew, c.LiveTTL = 20*time.Millisecond, 30*time.Second })
	hold(t, s, "run", me)
	srv.do("CONFIG", "SET", "maxmemory", "1mb")
	until(t, "away", func() bool { return s.Stats().Away })
	srv.do("PEXPIRE", s.keys.live(me), 5000)
	until(t, "prolonged", func() bool { return srv.do("PTTL", s.keys.live(me)).(int64) > 5000 })
	if !s.Stats().Away {
		t.Error("it is not full any more: this proves nothing")
	}
}

// Under ACL, with a password that needs encoding, and with no more than these
// rights; docs/OPERATIONS.md quotes them.
func TestACL(t *testing.T) {
	srv := startRedis(t)
	srv.do("ACL", "SETUSER", "proxy", "on", ">p@ss/w:rd", "~unbroken:*",
		"+evalsha", "+eval", "+hmget", "+hget", "+hset", "+get", "+set", "+setnx", "+del", "+exists", "+pexpire",
		"+append", "+strlen", "+getrange", "+zadd", "+zrange", "+zrem", "+zremrangebyrank", "+time", "+ping")
	srv.do("ACL", "SETUSER", "default", "off")
	s := open(t, "redis://proxy:p%40ss%2Fw%3Ard@"+srv.addr(), lasting)
	h := hold(t, s, "run", me)
	h.say("allowed")
	h.sync(t)
	must(t, s.Offer(t.Context(), checkpoint.AskKey{1}, h.fence))
	must(t, s.Release(t.Context(), h.fence))
	_, r, err := s.Adopt(t.Context(), checkpoint.AskKey{1}, "other", time.Hour)
	must(t, err)
	if string(r.Log) != "allowed" {
		t.Errorf("%+v", r)
	}
	_, err = s.Secret(t.Context(), "scope", []byte("x"))
	must(t, err)
	wrong := open(t, "redis://proxy:s3cret@"+srv.addr(), brisk)
	until(t, "away, and says why", func() bool {
		st := wrong.Stats()
		if strings.Contains(st.Error, "s3cret") {
			t.Fatalf("the reason shows the password: %s", st.Error)
		}
		return st.Away && strings.Contains(st.Error, "WRONGPASS")
	})
}
