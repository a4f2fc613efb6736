package gauge

import (
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/bench/mains"
)

func TestAStoreFaresAsItsStateSays(t *testing.T) {
	s, err := mains.New(openProvider(t).Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	call := Scenario{Name: "call", Clients: 1, Prompt: 10, Shape: Shape{Events: 1, Bytes: 5}}
	for _, c := range []struct {
		state StoreState
		least time.Duration
		down  bool
	}{{StoreHealthy, 0, false}, {StoreSlow, slowness, false}, {StoreDown, 0, true}} {
		c.state.on(s)
		began := time.Now()
		if err := once(within(t), s.Addr(), call); (err != nil) != c.down || time.Since(began) < c.least {
			t.Errorf("%s: %v after %v", c.state, err, time.Since(began))
		}
	}
}
