package proxy

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/filestore"
	"github.com/unbroken-llm/unbroken/ledger"
	"github.com/unbroken-llm/unbroken/redisstore"
)

// ledgers are the stores that a ledger is kept in, for several servers to share.
var ledgers = []struct {
	name string
	open func(t *testing.T) ledger.Store
}{
	{"memory", func(*testing.T) ledger.Store {
		return ledger.NewMemory(ledger.MemoryConfig{Clock: time.Now})
	}},
	{"file", func(t *testing.T) ledger.Store {
		s, err := filestore.Open(filestore.Config{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s.Runs()
	}},
	{"redis", func(t *testing.T) ledger.Store {
		o, err := redisstore.ParseURL("redis://" + miniredis.RunT(t).Addr())
		if err != nil {
			t.Fatal(err)
		}
		s, err := redisstore.Open(redisstore.Config{Server: o, Timeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close(context.Background()) })
		return s.Runs()
	}},
}

// way is one server's way to a shared ledger. around is called with each save, which it
// makes; nothing is asked any more of the ledger of a server that is cut off.
type way struct {
	ledger.Store
	cut    atomic.Bool
	around func(r *ledger.Run, save func() error) error
}

func (w *way) Load(ctx context.Context, key ledger.RunKey) (ledger.Stored, error) {
	if w.cut.Load() {
		return ledger.Stored{}, ledger.ErrUnavailable
	}
	return w.Store.Load(ctx, key)
}

func (w *way) Save(ctx context.Context, key ledger.RunKey, scope checkpoint.Scope, r *ledger.Run, expect uint64) error {
	save := func() error {
		if w.cut.Load() {
			return ledger.ErrUnavailable
		}
		return w.Store.Save(ctx, key, scope, r, expect)
	}
	if w.around == nil {
		return save()
	}
	return w.around(r, save)
}

// agency is an agent's run over several servers that share their stores.
type agency struct {
	*testing.T
	l     ledger.Store
	who   checkpoint.Scope
	turns *common
}

// server is one more of them.
func (a *agency) server(p *provider) (*proxied, *view, *way) {
	w := &way{Store: a.l}
	s, v := replica(a.T, p, a.turns, withGemini(p), func(c *Config) {
		c.Ledger, c.AckWait = w, time.Minute
		c.Relay.Grace = time.Millisecond // what follows a finish was never written by who was killed
	})
	a.who, _ = s.ScopeOf(http.Header{"Authorization": {"Bearer ann"}})
	return s, v, w
}

// tell has the application tell of its run.
func (a *agency) tell(id checkpoint.RunID, acts ...ledger.Act) {
	a.Helper()
	for i, act := range acts {
		e := ledger.Entry{At: time.Now(), Key: "key", Do: act}
		if r := a.run(id); r != nil {
			e.Fence = r.Fence
		}
		if _, _, err := ledger.Append(a.Context(), a.l, ledger.Key(a.who, id), a.who, e); err != nil {
			a.Fatalf("%d: %v", i, err)
		}
	}
}

func (a *agency) run(id checkpoint.RunID) *ledger.Run {
	a.Helper()
	got, err := a.l.Load(a.Context(), ledger.Key(a.who, id))
	if err != nil && got.Run != nil {
		a.Fatal(err)
	}
	return got.Run
}

// runs are all runs, the last written first.
func (a *agency) runs() (out []*ledger.Run) {
	a.Helper()
	keys, err := a.l.Recent(a.Context(), 100)
	if err != nil {
		a.Fatal(err)
	}
	for _, k := range keys {
		got, err := a.l.Load(a.Context(), k)
		if err != nil {
			a.Fatal(err)
		}
		out = append(out, got.Run)
	}
	return out
}

// all is everything that the ledger holds.
func (a *agency) all() (said string) {
	a.Helper()
	for _, r := range a.runs() {
		said += string(ledger.Encode(r)) + "\n"
	}
	return said
}

// steps are the histories that all steps answer.
func (a *agency) steps() (out []string) {
	a.Helper()
	for _, r := range a.runs() {
		for _, s := range r.Steps {
			out = append(out, s.Lineage)
		}
	}
	return out
}

// whose is how an application has its run.
type whose struct {
	name    string
	declare []ledger.Act
}

var owners = []whose{
	{"nobody's", nil},
	{"claimed", []ledger.Act{ledger.Begin{ID: "job-7"}, ledger.Claim{}}},
	{"reported", []ledger.Act{ledger.Begin{ID: "job-7"}, ledger.Claim{}, ledger.Declare{Reports: true}}},
}
