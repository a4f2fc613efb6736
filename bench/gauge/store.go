package gauge

import (
	"time"

	"github.com/unbroken-llm/unbroken/bench/mains"
)

// StoreState is how the Redis of a proxy fares under load.
type StoreState string

// The states. Of a slow store every answer comes [slowness] later; of one that is down every
// connection is reset, and so are new ones.
const (
	StoreHealthy StoreState = "healthy"
	StoreSlow    StoreState = "slow"
	StoreDown    StoreState = "down"
)

// slowness is how much later a slow store's answers come: a hundred times as long as a
// healthy one takes, and still an answer.
const slowness = 200 * time.Millisecond

var storeStates = []StoreState{StoreHealthy, StoreSlow, StoreDown}

func (s StoreState) peer() string { return "redis-" + string(s) }

// stores are the peers of the store's scenarios: one proxy, whose Redis changes for the worse
// when the load flows.
func stores(binary string) (all []Peer) {
	for _, state := range storeStates {
		all = append(all, unbroken(state.peer(), binary, "http", "redis", state))
	}
	return all
}

// on has the store in front of which a switch is fare so, on open connections too.
func (s StoreState) on(store *mains.Switch) {
	switch s {
	case StoreHealthy:
	case StoreSlow:
		store.Delay(slowness)
	case StoreDown:
		store.Cut()
	}
}
