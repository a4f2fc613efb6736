package e2e

import (
	"flag"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/unbroken-llm/unbroken/faultinject"
)

// full has every client meet every fault in every scenario where it occurs (make
// clients-full). Otherwise each fault meets every client in Go, and each nthClient in Node
// but some of each dialect, in one scenario.
var full = flag.Bool("clients.full", false, "every client, every fault, every scenario")

// nthClient is 1 when every client in Node meets every fault (make every).
var nthClient = flag.Int("clients.nth", 3, "a fault meets each nth of the clients in Node that speak a dialect")

// Cases wait more than they work: for back-off, for stalls, for a retry-after.
// Rows are parallel subtests, so that -run picks any of them.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "32"); err != nil {
		panic(err)
	}
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
	os.Exit(code)
}

// clocked bounds how many rows run at once whose fault is noticed by a clock, so
// that a busy machine is not taken for a silent provider.
var clocked = make(chan struct{}, 12)

func TestGoClients(t *testing.T) { runMatrix(t, goClients, 1) }

func TestNodeClients(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of cases: not with -short")
	}
	runMatrix(t, inNode(t), *nthClient)
}

// runMatrix has each client meet each fault in each scenario; or, in a sample, each nth
// of those that speak a dialect.
func runMatrix(t *testing.T, clients []client, nth int) {
	sheet := newSheet(clients)
	direct := newProvider(t, faultinject.OpenAI)
	t.Run("matrix", func(t *testing.T) {
		of := map[faultinject.Dialect]int{}
		for _, c := range clients {
			of[c.speaks]++
		}
		met := map[faultinject.Dialect]int{}
		for _, c := range clients {
			at, nth := met[c.speaks], min(nth, of[c.speaks])
			met[c.speaks]++
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				m := &measure{client: c, direct: direct, seen: map[string]func() (outcome, error){}}
				for fi := range faults {
					f := &faults[fi]
					if !f.meets(c) || !*full && (fi+at)%nth > 0 {
						continue
					}
					t.Run(f.name, func(t *testing.T) {
						t.Parallel()
						runRow(t, m, f, f.scenarios((fi+at)/nth), sheet)
					})
				}
			})
		}
	})
	t.Logf("\n%s", sheet)
}

// runRow has one client meet one fault in some scenarios.
func runRow(t *testing.T, m *measure, f *fault, in []*scenario, sheet *sheet) {
	if f.via == hasty {
		clocked <- struct{}{}
		defer func() { <-clocked }()
	}
	for _, sc := range in {
		st := newStage(t, f.via)
		want := f.expect(sc, m.client.speaks)
		want.unbroken = m.of(t, sc, "").reply.Message
		if m.client.stubborn {
			want.status = 0
		}
		if slices.Contains(f.uncounted, m.client.speaks) {
			want.unbroken.Usages = 0
		}
		if want.verdict == relayed || want.verdict == verbatim {
			o := m.of(t, sc, f.line(sc, m.client.speaks))
			want.direct = &o
			if want.verdict == relayed && o.reply.Failure == nil {
				// It does not read the error, and takes the polite end behind it for
				// the end; the proxy's abort it cannot miss.
				want.verdict, want.requests = refused, len(o.exchanges)
			}
		}
		got, err := st.play(t, m.client, sc, f.line(sc, m.client.speaks))
		if err != nil {
			sheet.enter(f, m.client, sc, wrong, 0)
			t.Error(err)
			continue
		}
		problems := want.problems(got)
		if x := got.exchanges; len(x) > 0 && x[0].Fault != "" && !x[0].Applied {
			problems = append(problems, "the fault's place was never reached")
		}
		verdict := want.verdict
		if len(problems) > 0 {
			verdict = wrong
		}
		sheet.enter(f, m.client, sc, verdict, len(got.exchanges))
		for _, p := range problems {
			t.Errorf("%s: %s", sc.name, p)
		}
		if len(problems) > 0 {
			t.Logf("%s: the provider saw: %s", sc.name, story(got.exchanges))
		}
	}
}

// measure is what a client gets from the provider itself.
type measure struct {
	client client
	direct *stage

	mu   sync.Mutex
	seen map[string]func() (outcome, error)
}

// of returns what comes of a scenario under a script; without one, a whole
// message.
func (m *measure) of(t *testing.T, sc *scenario, script string) outcome {
	t.Helper()
	m.mu.Lock()
	once := m.seen[sc.name+script]
	if once == nil {
		once = sync.OnceValues(func() (outcome, error) { return m.direct.play(t, m.client, sc, script) })
		m.seen[sc.name+script] = once
	}
	m.mu.Unlock()
	o, err := once()
	if err != nil {
		t.Fatalf("without a proxy: %v", err)
	}
	if script != "" {
		return o
	}
	if o.reply.Failure != nil || len(o.exchanges) != 1 || o.exchanges[0].Ending != faultinject.Complete {
		t.Fatalf("%s without a fault and a proxy: %+v; the provider saw: %s", sc.name, o.reply, story(o.exchanges))
	}
	if m := o.reply.Message; m.Text == "" || m.Finish == "" || m.Starts != 1 || sc.tools != (len(m.Calls) > 0) {
		t.Fatalf("%s without a fault and a proxy is no whole message: %+v", sc.name, m)
	}
	return o
}
