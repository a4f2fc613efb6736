package e2e

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"

	"github.com/unbroken-llm/unbroken/faultinject"
)

// Two replicas are asked for the same turn while it runs: the provider is asked
// once, both clients read the text, and the newer one alone gets the call. Twins
// without ids stay apart.
func TestOneTurnOnTwoReplicas(t *testing.T) {
	if testing.Short() {
		t.Skip("processes are started")
	}
	redis, path := redisServer(t), binary(t)
	provider := newProvider(t, faultinject.OpenAI).provider
	replicas := [2]*replicaProcess{serveProcess(t, path, redis, provider.URL()), serveProcess(t, path, redis, provider.URL())}
	for _, d := range []string{"chat", "messages", "responses", "gemini", "interactions"} {
		t.Run(d, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			q := question{in: tongueNamed(d), prompt: "Twice.", run: fmt.Sprintf("twice-%s-%d", d, turns.Add(1)), answer: "tool", script: "attempt *: pace 150ms"}
			type end struct {
				h   heardTurn
				err error
			}
			began, older := make(chan struct{}), make(chan end, 1)
			var once sync.Once
			go func() {
				h, err := q.ask(ctx, replicas[0].base, func(h *heardTurn) bool {
					if h.text != "" {
						once.Do(func() { close(began) })
					}
					return false
				})
				older <- end{h, err}
			}()
			select {
			case <-began:
			case e := <-older:
				t.Fatalf("the older connection got %v, %v", e.h, e.err)
			}
			h, err := q.ask(ctx, replicas[1].base, nil)
			if err != nil || len(h.calls) != 1 || h.finish == "" {
				t.Errorf("the newer connection got %v, %v\n%s", h, err, replicas[1].log)
			}
			o := <-older
			if o.err == nil || len(o.h.calls) > 0 || o.h.finish != "" || o.h.text != h.text {
				t.Errorf("the older connection got %v, %v; the newer %v", o.h, o.err, h)
			}
			n := 0
			for _, x := range provider.Log() {
				if x.Header.Get(faultinject.HeaderTurn) == q.run {
					n++
				}
			}
			if n != 1 {
				t.Errorf("the provider was asked %d times", n)
			}
		})
	}
}

// A replica is told to go while many turns run, and its drain is too short for
// them: every client that retries once, at the replica that is left, has its turn.
func TestRollingRestartLosesNoTurn(t *testing.T) {
	if testing.Short() {
		t.Skip("processes are started")
	}
	const clients = 16
	redis, path := redisServer(t), binary(t)
	provider := newProvider(t, faultinject.OpenAI).provider
	one := serveProcess(t, path, redis, provider.URL(), "--drain", "50ms")
	two := serveProcess(t, path, redis, provider.URL())
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	began := make(chan struct{}, clients)
	cut := make(chan bool, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			q := question{in: &tongues[i%len(tongues)], prompt: fmt.Sprintf("Client %d.", i), run: fmt.Sprintf("rolling-%d-%d", i, turns.Add(1)), answer: "tool"}
			uncut := q
			uncut.run += "-uncut"
			want, err := uncut.ask(ctx, two.base, nil)
			if err != nil {
				t.Errorf("client %d, undisturbed: %v", i, err)
			}
			var once sync.Once
			paced := q
			paced.script = "attempt *: pace 250ms"
			first, err := paced.ask(ctx, one.base, func(h *heardTurn) bool {
				if h.text != "" {
					once.Do(func() { began <- struct{}{} })
				}
				return false
			})
			once.Do(func() { began <- struct{}{} })
			cut <- err != nil
			got := first
			if err != nil {
				got, err = q.ask(ctx, two.base, nil)
			}
			if err != nil || got.String() == "" || got.text != want.text || got.finish != want.finish || len(got.calls) != len(want.calls) {
				t.Errorf("client %d got %v, %v; undisturbed it is %v", i, got, err, want)
			}
		})
	}
	for range clients {
		<-began
	}
	if err := one.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	n := 0
	for range clients {
		if <-cut {
			n++
		}
	}
	if n == 0 {
		t.Error("no stream was cut: this tests nothing")
	}
	t.Logf("%d of %d streams were cut and carried on elsewhere", n, clients)
}
