package proxy

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/unbroken-llm/unbroken/redisstore"
)

// overRedis serves p with a store in the Redis at addr, as one replica of several.
func overRedis(t *testing.T, p *provider, addr string) *proxied {
	t.Helper()
	o, err := redisstore.ParseURL("redis://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	// Deadlines are longer than in production, where what is slow counts as broken.
	store, err := redisstore.Open(redisstore.Config{Server: o, Timeout: 5 * time.Second, Flush: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, p, withGemini(p), func(c *Config) { c.Store, c.AckWait, c.ScopeKey = store, 5*time.Second, []byte("shared by all") })
	s.recall.wait = 5 * time.Second // so is a busy test machine
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		store.Close(ctx)
	})
	return s
}

// Another replica than the one that saw the turn break tells the model the same.
func TestReplicasTellTheSame(t *testing.T) {
	for _, c := range dialogues {
		t.Run(c.name, func(t *testing.T) {
			p := c.provider(t)
			addr := miniredis.RunT(t).Addr()
			one, two := overRedis(t, p, addr), overRedis(t, p, addr)
			c.ask(t, one, p, c.first, ann)
			for i, s := range []*proxied{two, one, two} {
				if got, _ := c.ask(t, s, p, c.plain(c.second), ann); got != c.noted(c.second) {
					t.Errorf("request %d reached the provider as\n%s\nwant\n%s", i, got, c.noted(c.second))
				}
			}
			if got, _ := c.ask(t, two, p, c.plain(c.second), bob); got != c.plain(c.second) {
				t.Errorf("another caller was told: %s", got)
			}
		})
	}
}

// Redis away: the process that knows tells all the same, another one passes the
// request as it is, and none of them waits.
func TestLaterTurnsWithoutRedis(t *testing.T) {
	c := dialogues[0]
	p := c.provider(t)
	m := miniredis.RunT(t)
	one, two := overRedis(t, p, m.Addr()), overRedis(t, p, m.Addr())
	c.ask(t, one, p, c.first, ann)
	m.Close()
	if got, _ := c.ask(t, one, p, c.plain(c.second), ann); got != c.noted(c.second) {
		t.Errorf("the process that knows forwarded\n%s", got)
	}
	if got, _ := c.ask(t, two, p, c.plain(c.second), ann); got != c.plain(c.second) {
		t.Errorf("the other one forwarded\n%s", got)
	}
}
