package gauge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Soaking is the size of a soak: a steady load of paced turns, a part of whose attempts is cut.
type Soaking struct {
	Breaks
	Rate  float64
	For   time.Duration
	Every time.Duration // between two looks
}

// SoakSize is that of the report: 5,000 events a second, 25 turns a second.
var SoakSize = Soaking{Rate: 0.1, For: 30 * time.Minute, Every: 5 * time.Second, Breaks: Breaks{
	Clients: 100, Tokens: 200, Pace: 20 * time.Millisecond, Think: 50 * time.Millisecond, Prompt: 2000,
}}

// What may be gained over a soak, as a part of what there was, or so much if that is more.
const (
	soakMemoryPart, soakMemoryLeast = 0.10, 8     // MB
	soakCountPart, soakCountLeast   = 0.05, 20    // goroutines, files
	soakWarmPart                    = 1.0 / 10    // of the time, which is not judged
	soakWarmMost                    = time.Minute // of it
	soakLooks                       = 12          // at least, or thirds mean nothing
)

// Look is what was seen at a moment.
type Look struct {
	At         float64 `json:"at_s"`
	Memory     float64 `json:"memory_mb"` // resident, the kernel's books
	Heap       float64 `json:"heap_mb"`   // in use, Go's own
	Goroutines float64 `json:"goroutines"`
	Files      float64 `json:"open_files"`
	Whole      int     `json:"whole"` // turns until now
	Broken     int     `json:"broken"`
}

// Soaked is a soak.
type Soaked struct {
	Machine Machine        `json:"machine"`
	Peer    string         `json:"peer"`
	Wire    Wire           `json:"wire"`
	Rate    float64        `json:"rate"`
	Clients int            `json:"clients"`
	Took    float64        `json:"took_s"`
	Warm    float64        `json:"warm_s"` // that is not judged
	Whole   int            `json:"whole"`
	Broken  int            `json:"broken"`
	Faults  map[string]int `json:"faults,omitempty"`
	Trends  []Trend        `json:"trends"`
	Looks   []Look         `json:"looks"`
}

// Err is what grew.
func (s Soaked) Err() error {
	var all []error
	for _, t := range s.Trends {
		if t.Grows() {
			all = append(all, errors.New(t.String()))
		}
	}
	return errors.Join(all...)
}

// Soak loads a peer for a long time and watches it.
func Soak(ctx context.Context, z Soaking, p Peer, log io.Writer) (s Soaked, err error) {
	if p.With == nil {
		return s, fmt.Errorf("%s tells nothing of its goroutines", p.Name)
	}
	admin := freeAddr()
	st, err := z.open(p.With("--admin", admin))
	if err != nil {
		return s, err
	}
	defer st.close()
	s = Soaked{Machine: thisMachine(), Peer: p.Name, Wire: z.Wire, Rate: z.Rate, Clients: z.Clients, Faults: map[string]int{}}
	load, stop := context.WithCancel(ctx)
	defer stop()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for client := range z.Clients {
		wg.Go(func() {
			// Spread over one turn, so that they are everywhere in theirs.
			_ = pause(load, z.Pace*time.Duration(z.Tokens*client/z.Clients))
			for i := 0; load.Err() == nil; i++ {
				n := client + i*z.Clients
				t := st.turn(load, turnName(n), fates(z.Rate, uint64(n), z.Tokens))
				mu.Lock()
				switch {
				case load.Err() != nil: // cut short by us
				case t.err == nil:
					s.Whole++
				default:
					s.Broken++
					s.Faults[t.err.Error()]++
				}
				mu.Unlock()
			}
		})
	}
	began := time.Now()
	for time.Since(began) < z.For || len(s.Looks) < soakLooks {
		if err := pause(ctx, z.Every); err != nil {
			return s, err
		}
		l, err := look(ctx, st.front.proc, admin)
		if err != nil {
			return s, err
		}
		mu.Lock()
		l.At, l.Whole, l.Broken = time.Since(began).Seconds(), s.Whole, s.Broken
		mu.Unlock()
		s.Looks = append(s.Looks, l)
		fmt.Fprintf(log, "soak %6.0f s of %.0f: %6.1f MB, heap %5.1f MB, %5.0f goroutines, %4.0f files, %d turns whole, %d not\n",
			l.At, z.For.Seconds(), l.Memory, l.Heap, l.Goroutines, l.Files, l.Whole, l.Broken)
	}
	stop()
	wg.Wait()
	s.Took = time.Since(began).Seconds()
	s.judge(min(soakWarmPart*s.Took, soakWarmMost.Seconds()))
	return s, nil
}

// judge computes the trends of what was seen behind the warm-up.
func (s *Soaked) judge(warm float64) {
	s.Warm = warm
	var hours, memory, heap, goroutines, files []float64
	for _, l := range s.Looks {
		if l.At < warm {
			continue
		}
		hours = append(hours, l.At/3600)
		memory, heap = append(memory, l.Memory), append(heap, l.Heap)
		goroutines, files = append(goroutines, l.Goroutines), append(files, l.Files)
	}
	s.Trends = []Trend{
		trend("memory, MB", hours, memory, soakMemoryPart, soakMemoryLeast),
		trend("heap, MB", hours, heap, soakMemoryPart, soakMemoryLeast),
		trend("goroutines", hours, goroutines, soakCountPart, soakCountLeast),
		trend("open files", hours, files, soakCountPart, soakCountLeast),
	}
}

// look asks the kernel and the proxy. A nil process is one that nobody has books of.
func look(ctx context.Context, p *process, admin string) (l Look, err error) {
	rss, err := p.memory()
	if err != nil {
		return l, err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+admin+"/metrics", nil)
	if err != nil {
		return l, err
	}
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return l, fmt.Errorf("ask for metrics: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	page, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = errors.New(res.Status)
	}
	if err != nil {
		return l, fmt.Errorf("ask for metrics: %w", err)
	}
	l.Memory = float64(rss) / 1e6
	for _, m := range []struct {
		name  string
		to    *float64
		scale float64
	}{{"go_goroutines", &l.Goroutines, 1}, {"go_memstats_heap_inuse_bytes", &l.Heap, 1e6}, {"process_open_fds", &l.Files, 1}} {
		v, err := metric(page, m.name)
		if err != nil {
			return l, err
		}
		*m.to = v / m.scale
	}
	return l, nil
}

// metric finds one without labels on a page of Prometheus' text format.
func metric(page []byte, name string) (float64, error) {
	for line := range bytes.Lines(page) {
		if v, ok := strings.CutPrefix(string(line), name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(v), 64)
		}
	}
	return 0, fmt.Errorf("the metrics have no %s", name)
}
