package redisstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// never is a flush that only comes when somebody hurries it.
func never(c *Config) {
	lasting(c)
	c.Flush = time.Hour
}

func TestAWriterWritesATurn(t *testing.T) {
	s := open(t, "redis://"+miniredis.RunT(t).Addr(), lasting)
	h := hold(t, s, "run", me)
	h.say("one ")
	h.say("two ")
	h.Append(0, []byte("one two ")) // again does no harm
	h.Append(4, []byte("two three"))
	h.at = 13
	h.Mark(checkpoint.State{Attempt: 2, Causes: []string{"idle_stall"}})
	h.sync(t)
	if got := logOf(t, s, "run"); got != "one two three" {
		t.Fatalf("log %q", got)
	}
	h.say(".")
	done := checkpoint.State{Phase: checkpoint.Finished, Seen: 14, Attempt: 3, Causes: []string{"idle_stall"}}
	h.Settle(done)
	h.say("too late")
	until(t, "settled", func() bool { return s.Stats().Turns == 0 })
	r, err := s.Get(t.Context(), key("run"))
	must(t, err)
	if string(r.Log) != "one two three." || r.Owner != "" || !reflect.DeepEqual(r.State, done) {
		t.Fatalf("settled: %+v", r)
	}
	select {
	case err := <-h.lost:
		t.Errorf("lost: %v", err)
	default:
	}
}

func TestAForgottenTurnIsGone(t *testing.T) {
	s := open(t, "redis://"+miniredis.RunT(t).Addr(), lasting)
	h := hold(t, s, "run", me)
	h.say("refused")
	h.Forget()
	until(t, "forgotten", func() bool { return s.Stats().Turns == 0 })
	_, err := s.Get(t.Context(), key("run"))
	want(t, err, checkpoint.ErrNotFound)
}

func TestWritesOfAllStreamsAreOnePipeline(t *testing.T) {
	s := open(t, "redis://"+miniredis.RunT(t).Addr(), never)
	const n = 50
	var turns []*held
	for i := range n {
		h := hold(t, s, fmt.Sprint(i), me)
		for range 20 {
			h.say("word ")
		}
		turns = append(turns, h)
	}
	if st := s.Stats(); st.Flushes != 0 || st.Behind != n*100 || st.BehindTurns != n {
		t.Fatalf("before: %+v", st)
	}
	before := s.Stats().Commands
	turns[7].sync(t) // hurries all
	if st := s.Stats(); st.Flushes != 1 || st.Behind != 0 || st.Commands-before > 2*n {
		t.Fatalf("after: %+v", st) // twice, when Redis did not know the script
	}
	if got := logOf(t, s, "49"); got != strings.Repeat("word ", 20) {
		t.Errorf("log %q", got)
	}
}

func TestEnoughTextIsNotKeptWaiting(t *testing.T) {
	s := open(t, "redis://"+miniredis.RunT(t).Addr(), never)
	h := hold(t, s, "run", me)
	h.say(strings.Repeat("x", 32<<10))
	until(t, "flushed", func() bool { return s.Stats().Behind == 0 })
}

// A backlog of any size goes out in commands and pipelines of bounded size.
func TestALongBacklogIsWrittenInParts(t *testing.T) {
	s := open(t, "redis://"+miniredis.RunT(t).Addr(), func(c *Config) {
		never(c)
		c.FlushBytes = 1 << 30
	})
	h := hold(t, s, "run", me)
	text := strings.Repeat("0123456789", 300<<10) // 3 MB
	h.say(text)
	h.sync(t)
	st := s.Stats()
	if most := int64(3_072_000/writeChunk + 3); st.Commands > 2*most || st.Flushes < 5 {
		t.Errorf("%d commands in %d flushes", st.Commands, st.Flushes)
	}
	if logOf(t, s, "run") != text {
		t.Error("another log")
	}
}

// What is urgent goes first, whatever waits.
func TestABacklogDoesNotDelayWhatIsUrgent(t *testing.T) {
	s := open(t, "redis://"+miniredis.RunT(t).Addr(), func(c *Config) { never(c); c.FlushBytes = 1 << 30 })
	for i := range 3 {
		hold(t, s, fmt.Sprint(i), me).say(strings.Repeat("x", batchBytes))
	}
	urgent := hold(t, s, "urgent", me)
	urgent.say("tool call")
	w := urgent.Writer.(*writer)
	s.queue.mu.Lock()
	s.queue.put(w, true, &s.cfg)
	first, n := s.queue.dirty[0], len(s.queue.dirty)
	s.queue.mu.Unlock()
	if first != w || n != 4 {
		t.Errorf("of %d that wait, the urgent one is not the first", n)
	}
	urgent.sync(t)
}

func TestANewerClaimEndsAWriter(t *testing.T) {
	s := open(t, "redis://"+miniredis.RunT(t).Addr(), lasting)
	h := hold(t, s, "run", me)
	h.say("old")
	h.sync(t)
	next := hold(t, s, "run", me)
	h.say("er")
	want(t, h.Sync(t.Context()), checkpoint.ErrFenced)
	want(t, <-h.lost, checkpoint.ErrFenced)
	want(t, h.Sync(t.Context()), checkpoint.ErrFenced)
	h.Settle(checkpoint.State{Phase: checkpoint.Finished})
	next.say(" and new")
	next.sync(t)
	if got := logOf(t, s, "run"); got != "old and new" {
		t.Errorf("log %q", got)
	}
	if st := s.Stats(); st.Fenced != 1 || st.Drops != 0 || st.Turns != 1 {
		t.Errorf("%+v", st)
	}
}

// A stream that says nothing for long must learn that it lost its turn, too.
func TestASilentTurnIsChecked(t *testing.T) {
	m := miniredis.RunT(t)
	s := open(t, "redis://"+m.Addr(), func(c *Config) { lasting(c); c.Check = 4 * time.Millisecond; c.Renew = 4 * time.Millisecond })
	h := hold(t, s, "run", me)
	h.say("abc")
	h.sync(t)
	other := open(t, "redis://"+m.Addr(), lasting)
	_, _, err := other.Claim(t.Context(), key("run"), me, head("run"))
	must(t, err)
	want(t, <-h.lost, checkpoint.ErrFenced)
}

func TestAHoleLosesTheTurn(t *testing.T) {
	s := open(t, "redis://"+miniredis.RunT(t).Addr(), lasting)
	h := hold(t, s, "run", me)
	h.Append(3, []byte("d"))
	want(t, <-h.lost, checkpoint.ErrGap)
	if st := s.Stats(); st.Drops != 1 || st.Kept != 0 {
		t.Errorf("%+v", st)
	}
}

func TestATurnIsBounded(t *testing.T) {
	s := open(t, "redis://"+miniredis.RunT(t).Addr(), func(c *Config) { lasting(c); c.MaxTurn = 10 })
	h := hold(t, s, "run", me)
	h.say("0123456789")
	h.sync(t)
	want(t, s.Append(t.Context(), h.fence, 10, []byte("x")), checkpoint.ErrTooLarge)
	h.say("x")
	want(t, <-h.lost, checkpoint.ErrTooLarge)
	if got := logOf(t, s, "run"); got != "0123456789" {
		t.Errorf("log %q", got)
	}
}

// What Redis loses is written again from memory, whatever part of it was lost.
func TestALostRecordIsRestored(t *testing.T) {
	for name, lose := range map[string]func(m *miniredis.Miniredis, k []string){
		"all of it":      func(m *miniredis.Miniredis, _ []string) { m.FlushAll() },
		"the record":     func(m *miniredis.Miniredis, k []string) { m.Del(k[0]) },
		"the log":        func(m *miniredis.Miniredis, k []string) { m.Del(k[1]) },
		"the fence":      func(m *miniredis.Miniredis, k []string) { m.Del(k[2]) },
		"the last words": func(m *miniredis.Miniredis, k []string) { _ = m.Set(k[1], "said "); m.HSet(k[0], "n", "5") },
		"the last claim": func(m *miniredis.Miniredis, k []string) { m.HSet(k[0], "f", "12", "o", "older"); m.Del(k[2]) },
	} {
		t.Run(name, func(t *testing.T) {
			m := miniredis.RunT(t)
			s := open(t, "redis://"+m.Addr(), lasting)
			h := hold(t, s, "run", me)
			h.say("said before ")
			h.Mark(checkpoint.State{Attempt: 2})
			h.sync(t)
			lose(m, s.keys.turn(key("run")))
			h.say("and after")
			h.sync(t)
			r, err := s.Get(t.Context(), key("run"))
			must(t, err)
			if string(r.Log) != "said before and after" || r.Owner != me || r.Run != "run" || r.State.Attempt != 2 {
				t.Errorf("restored: %+v", r)
			}
			if m.TTL(s.keys.turn(key("run"))[1]) == 0 {
				t.Error("it stays for ever")
			}
			h.Settle(checkpoint.State{Phase: checkpoint.Broken})
			until(t, "settled", func() bool { return s.Stats().Turns == 0 })
		})
	}
}

// A record that a newer claim finished or deleted is not brought back by whoever
// slept meanwhile.
func TestALateWriterRestoresNothing(t *testing.T) {
	m := miniredis.RunT(t)
	s := open(t, "redis://"+m.Addr(), lasting)
	h := hold(t, s, "run", me)
	h.say("old")
	h.sync(t)
	f, _, err := s.Claim(t.Context(), key("run"), me, head("run"))
	must(t, err)
	must(t, s.Delete(t.Context(), f))
	h.say("er")
	want(t, h.Sync(t.Context()), checkpoint.ErrFenced)
	_, err = s.Get(t.Context(), key("run"))
	want(t, err, checkpoint.ErrNotFound)
}

func TestMemoryIsBoundedWhileRedisIsAway(t *testing.T) {
	m := miniredis.RunT(t)
	s := open(t, "redis://"+m.Addr(), func(c *Config) { lasting(c); c.Memory = 100 << 10 })
	small, large := hold(t, s, "small", me), hold(t, s, "large", me)
	small.say("kept")
	large.say(strings.Repeat("x", 60<<10))
	large.sync(t)
	m.SetError("LOADING Redis is loading the dataset in memory")
	_, _ = s.Get(t.Context(), key("small"))
	until(t, "away", func() bool { _, _ = s.Get(t.Context(), key("small")); return s.Stats().Away })
	// The acknowledged part makes room, the rest does not.
	large.say(strings.Repeat("y", 60<<10))
	small.say(" too")
	if st := s.Stats(); st.Kept > 100<<10 || st.Drops != 0 || st.Behind < 60<<10 {
		t.Fatalf("%+v", st)
	}
	large.say(strings.Repeat("z", 60<<10))
	want(t, <-large.lost, checkpoint.ErrTooLarge)
	want(t, small.Sync(t.Context()), checkpoint.ErrUnavailable)
	if st := s.Stats(); st.Kept != int64(len(" too")) || st.Drops != 1 || st.Unacknowledged != 1 {
		t.Fatalf("%+v", st)
	}
	m.SetError("")
	until(t, "back", func() bool { st := s.Stats(); return !st.Away && st.Behind == 0 })
	if got := logOf(t, s, "small"); got != "kept too" {
		t.Errorf("log %q", got)
	}
}

// Outage logging must not melt the machine (FIELD-REPORTS H6).
func TestAnOutageIsTwoLines(t *testing.T) {
	m := miniredis.RunT(t)
	var log journal
	s := open(t, "redis://"+m.Addr(), func(c *Config) { c.Log = log.logger() })
	h := hold(t, s, "run", me)
	m.SetError("OOM command not allowed when used memory > 'maxmemory'.")
	until(t, "away", func() bool { h.say("x"); return log.count("away:") > 0 })
	for range 1000 {
		h.say("x")
		want(t, h.Sync(t.Context()), checkpoint.ErrUnavailable)
		_, err := s.Get(t.Context(), key("run"))
		want(t, err, checkpoint.ErrUnavailable)
	}
	st := s.Stats()
	if !strings.Contains(st.Error, "OOM") || st.Since.IsZero() || st.Lag <= 0 {
		t.Errorf("%+v", st)
	}
	m.SetError("")
	until(t, "back", func() bool { return log.count("is back") > 0 })
	h.sync(t)
	log.mu.Lock()
	defer log.mu.Unlock()
	if len(log.lines) != 2 {
		t.Errorf("%d lines:\n%s", len(log.lines), strings.Join(log.lines, ""))
	}
}

// On -READONLY all connections are dropped: whoever answers so is no master, and
// the name may lead elsewhere by now (FIELD-REPORTS H3).
func TestADemotedMasterIsLeft(t *testing.T) {
	m := miniredis.RunT(t)
	s := open(t, "redis://"+m.Addr(), nil)
	h := hold(t, s, "run", me)
	h.say("before ")
	h.sync(t)
	m.SetError("READONLY You can't write against a read only replica.")
	h.say("meanwhile ")
	until(t, "connections are dropped", func() bool { return s.Stats().Reconnects > 0 })
	m.SetError("")
	h.say("after")
	until(t, "written", func() bool { return s.Stats().Behind == 0 && !s.Stats().Away })
	if got := logOf(t, s, "run"); got != "before meanwhile after" {
		t.Errorf("log %q", got)
	}
}

// Nobody is declared dead by a process that could not reach Redis itself.
func TestAfterAnOutageTheLivingHaveTimeToRenew(t *testing.T) {
	m := miniredis.RunT(t)
	set := func(grace time.Duration) func(*Config) {
		return func(c *Config) { lasting(c); c.Renew = 5 * time.Millisecond; c.Grace = grace }
	}
	owner := open(t, "redis://"+m.Addr(), lasting)
	f, _, err := owner.Claim(t.Context(), key("run"), "them", head("run"))
	must(t, err)
	mortal{owner}.Die("them")
	hasty := open(t, "redis://"+m.Addr(), set(time.Hour))
	until(t, "steady", func() bool { hasty.lives.mu.Lock(); defer hasty.lives.mu.Unlock(); return !hasty.lives.steady.IsZero() })
	_, r, err := hasty.Claim(t.Context(), key("run"), me, head("run"))
	want(t, err, checkpoint.ErrOwned)
	if r.Owner != "them" {
		t.Errorf("owner %q", r.Owner)
	}
	if _, alive, err := hasty.Follow(t.Context(), key("run"), 0); err != nil || !alive {
		t.Errorf("alive %v, %v", alive, err)
	}
	must(t, owner.Append(t.Context(), f, 0, []byte("x"))) // nobody was fenced
	patient := open(t, "redis://"+m.Addr(), set(30*time.Millisecond))
	until(t, "taken over", func() bool {
		_, _, err := patient.Claim(t.Context(), key("run"), me, head("run"))
		return err == nil
	})
	want(t, owner.Append(t.Context(), f, 1, []byte("y")), checkpoint.ErrFenced)
}

func TestCloseLeavesNothingBehind(t *testing.T) {
	m := miniredis.RunT(t)
	o, err := ParseURL("redis://" + m.Addr())
	must(t, err)
	s, err := Open(Config{Server: o, Flush: time.Hour, Timeout: 5 * time.Second})
	must(t, err)
	h := hold(t, s, "run", me)
	h.say("unsaid")
	s.Close(t.Context())
	s.Close(t.Context())
	want(t, s.Append(t.Context(), h.fence, 6, nil), checkpoint.ErrUnavailable)
	next := open(t, "redis://"+m.Addr(), lasting)
	_, r, err := next.Claim(t.Context(), key("run"), "next", head("run"))
	must(t, err) // at once: the life was given up
	if string(r.Log) != "unsaid" {
		t.Errorf("log %q", r.Log)
	}
}

// Many streams write, mark and settle at the same time as Redis fails now and
// then. In the end every log is whole.
func TestManyStreamsThroughAFlakyRedis(t *testing.T) {
	m := miniredis.RunT(t)
	s := open(t, "redis://"+m.Addr(), lasting)
	const n = 30
	var wg sync.WaitGroup
	wants := make([][]byte, n)
	turns := make([]*held, n)
	for i := range n {
		turns[i] = hold(t, s, fmt.Sprint(i), me)
	}
	for i, h := range turns {
		wg.Go(func() {
			var all bytes.Buffer
			for j := range 200 {
				p := fmt.Sprintf("%d/%d ", i, j)
				all.WriteString(p)
				h.say(p)
				if j%50 == i%50 {
					ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
					if err := h.Sync(ctx); err != nil && !errors.Is(err, checkpoint.ErrUnavailable) {
						t.Errorf("sync: %v", err)
					}
					cancel()
				}
				if i == 0 && j%20 == 0 {
					m.SetError([]string{"", "ERR injected"}[j/20%2])
				}
			}
			h.Settle(checkpoint.State{Phase: checkpoint.Broken, Seen: int64(all.Len())})
			wants[i] = all.Bytes()
		})
	}
	wg.Wait()
	m.SetError("")
	until(t, "all settled", func() bool { return s.Stats().Turns == 0 })
	for i, want := range wants {
		r, err := s.Get(t.Context(), key(fmt.Sprint(i)))
		must(t, err)
		if !bytes.Equal(r.Log, want) || r.State.Seen != int64(len(want)) || r.Owner != "" {
			t.Errorf("turn %d: %d bytes of %d, %+v", i, len(r.Log), len(want), r.State)
		}
	}
	if st := s.Stats(); st.Drops != 0 || st.Kept != 0 {
		t.Errorf("%+v", st)
	}
}

// What is written to many turns at once is one script call, and each is answered for
// itself: who lost his turn, whose key is somebody else's, who has a hole.
func TestEachTurnOfAScriptIsJudgedByItself(t *testing.T) {
	for name, url := range map[string]string{"redis": startRedis(t).url(), "miniredis": "redis://" + miniredis.RunT(t).Addr()} {
		t.Run(name, func(t *testing.T) {
			s := open(t, url, never)
			fine, robbed, alien, last := hold(t, s, "fine", me), hold(t, s, "robbed", me), hold(t, s, "alien", me), hold(t, s, "last", me)
			other := open(t, url, never)
			_, _, err := other.Claim(t.Context(), key("robbed"), me, head("robbed"))
			must(t, err)
			must(t, s.client().Del(t.Context(), s.keys.turn(key("alien"))[1]).Err())
			must(t, s.client().SAdd(t.Context(), s.keys.turn(key("alien"))[1], "x").Err())
			fine.sync(t) // the scripts are known
			for _, h := range []*held{fine, robbed, alien, last} {
				h.say("word")
			}
			commands := s.Stats().Commands
			last.sync(t)
			fine.sync(t)
			if n := s.Stats().Commands - commands; n > 2 { // the second by its text
				t.Errorf("%d script calls for four turns", n)
			}
			want(t, <-robbed.lost, checkpoint.ErrFenced)
			want(t, <-alien.lost, checkpoint.ErrCorrupt)
			for _, run := range []string{"fine", "last"} {
				if got := logOf(t, s, run); got != "word" {
					t.Errorf("%s: log %q", run, got)
				}
			}
			if is, err := s.client().SMembers(t.Context(), s.keys.turn(key("alien"))[1]).Result(); err != nil || len(is) != 1 {
				t.Errorf("the foreign key: %v, %v", is, err)
			}
		})
	}
}

// A cluster behind an address that looks like one server refuses scripts on turns in
// different slots. That is learned once; nothing is lost by it.
func TestAScriptStaysInItsSlotWhereItMust(t *testing.T) {
	srv := startRedis(t, "--cluster-enabled", "yes")
	srv.do("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	until(t, "a cluster", func() bool { return strings.Contains(srv.do("CLUSTER", "INFO").(string), "cluster_state:ok") })
	s := open(t, srv.url(), never)
	var turns []*held
	for i := range 9 {
		h := hold(t, s, fmt.Sprint(i), me)
		h.say("word")
		turns = append(turns, h)
	}
	for i, h := range turns {
		h.sync(t)
		if got := logOf(t, s, fmt.Sprint(i)); got != "word" {
			t.Errorf("log %q", got)
		}
	}
	if st := s.Stats(); st.Drops != 0 || st.Failures != 0 || !s.apart.Load() {
		t.Errorf("%+v", st)
	}
}

// The time to live is begun anew from time to time only, and always when it has to be.
func TestTheTimeToLiveIsRenewed(t *testing.T) {
	m := miniredis.RunT(t)
	s := open(t, "redis://"+m.Addr(), func(c *Config) { never(c); c.TTL = time.Hour })
	h := hold(t, s, "run", me)
	k := s.keys.turn(key("run"))
	h.say("a")
	h.sync(t)
	m.FastForward(20 * time.Minute)
	h.say("b")
	h.sync(t)
	if ttl := m.TTL(k[1]); ttl != 40*time.Minute {
		t.Errorf("it was renewed with every word: %v", ttl)
	}
	w := h.Writer.(*writer)
	s.queue.mu.Lock()
	w.renewed = w.renewed.Add(-20 * time.Minute) // as the clock of this process has it
	s.queue.mu.Unlock()
	h.say("c")
	h.sync(t)
	for _, k := range k[:2] {
		if ttl := m.TTL(k); ttl != time.Hour {
			t.Errorf("%s: %v", k, ttl)
		}
	}
}

// Turns that are over are not looked at by everybody who asks the same question.
func TestOffersOfTurnsThatAreOverAreWithdrawn(t *testing.T) {
	s := open(t, "redis://"+miniredis.RunT(t).Addr(), lasting)
	ask := checkpoint.AskKey{1}
	offers := func() int64 { return s.client().ZCard(t.Context(), s.keys.ask(ask)).Val() }
	live := hold(t, s, "live", me)
	must(t, s.Offer(t.Context(), ask, live.fence))
	for i, end := range []func(*held){
		func(h *held) { h.Settle(checkpoint.State{Phase: checkpoint.Finished}) },
		func(h *held) { h.Forget() },
		func(h *held) { h.Settle(checkpoint.State{Phase: checkpoint.Broken}) },
	} {
		h := hold(t, s, fmt.Sprint(i), me)
		must(t, s.Offer(t.Context(), ask, h.fence))
		end(h)
	}
	until(t, "settled", func() bool { return s.Stats().Turns == 1 })
	if offers() != 4 {
		t.Fatalf("%d offers", offers())
	}
	_, _, err := s.Adopt(t.Context(), ask, me, time.Hour)
	want(t, err, checkpoint.ErrNotFound)
	if offers() != 2 {
		t.Errorf("%d offers are left, of one live and one broken turn", offers())
	}
	before := s.Stats().Commands
	_, _, err = s.Adopt(t.Context(), ask, me, time.Hour)
	want(t, err, checkpoint.ErrNotFound)
	if n := s.Stats().Commands - before; n != 2 { // the offers, and a look at the broken one
		t.Errorf("%d script calls", n)
	}
}
