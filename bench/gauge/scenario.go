package gauge

import "time"

// Scenario is a load.
type Scenario struct {
	Name    string
	Title   string
	Wire    Wire `json:",omitempty"` // "": Chat
	Shape   Shape
	Stream  bool
	Clients int
	Prompt  int // bytes
	// Memory: the streams stay open long enough for memory to be told.
	Memory bool
	// Upload: each measurement is one call of a fresh process, and memory is its peak,
	// for each byte of the prompt.
	Upload bool `json:",omitempty"`
	// Stores: the peers are Unbroken with Redis in each [StoreState], and the ratios are
	// to that where it is well.
	Stores bool `json:",omitempty"`
}

func (s Scenario) wire() Wire {
	if s.Wire == "" {
		return Chat
	}
	return s.Wire
}

// against is the peer that ratios are taken to where it takes part.
func (s Scenario) against() string {
	if s.Stores {
		return StoreHealthy.peer()
	}
	return Against
}

// unit is what CPU is divided by.
func (s Scenario) unit() string {
	if s.Stream {
		return "event"
	}
	return "call"
}

// paced reports whether latency is the proxy's doing: where streams go as fast as they can,
// it is that of the queues.
func (s Scenario) paced() bool { return s.Stream && s.Shape.Every > 0 }

// Scenarios of the standard table.
var Scenarios = []Scenario{
	{Name: "flood", Title: "64 streams, as fast as they go", Stream: true, Clients: 64, Prompt: 2000,
		Shape: Shape{Events: 5000, Bytes: 20}},
	{Name: "paced1000", Title: "1,000 streams, an event each 20 ms", Stream: true, Clients: 1000, Prompt: 2000,
		Shape: Shape{Events: 1000, Bytes: 20, Every: 20 * time.Millisecond}},
	{Name: "paced250", Title: "250 streams, an event each 20 ms", Stream: true, Clients: 250, Prompt: 2000,
		Shape: Shape{Events: 1000, Bytes: 20, Every: 20 * time.Millisecond}},
	{Name: "idle5000", Title: "5,000 streams, an event a second", Stream: true, Clients: 5000, Prompt: 2000, Memory: true,
		Shape: Shape{Events: 120, Bytes: 20, Every: time.Second}},
	{Name: "json", Title: "JSON calls, 32 at a time", Clients: 32, Prompt: 2000,
		Shape: Shape{Events: 1, Bytes: 1000}},
	{Name: "body50", Title: "one JSON call with a prompt of 50 MB", Clients: 1, Prompt: 50_000_000, Upload: true,
		Shape: Shape{Events: 1, Bytes: 1000}},
	{Name: "store250", Title: "250 streams, an event each 20 ms, while Redis is well, slow or away", Stream: true, Clients: 250, Prompt: 2000, Stores: true,
		Shape: Shape{Events: 1000, Bytes: 20, Every: 20 * time.Millisecond}},
}

// Linear are the scenarios that show whether cost grows with nothing but the events: as
// many of them a second over more and more streams, and in longer and longer answers.
var Linear = []Scenario{
	{Name: "streams100", Title: "100 streams, 5,000 events a second", Stream: true, Clients: 100, Prompt: 2000,
		Shape: Shape{Events: 3000, Bytes: 20, Every: 20 * time.Millisecond}},
	{Name: "streams1000", Title: "1,000 streams, 5,000 events a second", Stream: true, Clients: 1000, Prompt: 2000,
		Shape: Shape{Events: 300, Bytes: 20, Every: 200 * time.Millisecond}},
	{Name: "streams10000", Title: "10,000 streams, 5,000 events a second", Stream: true, Clients: 10_000, Prompt: 2000,
		Shape: Shape{Events: 30, Bytes: 20, Every: 2 * time.Second}},
	{Name: "answer1KB", Title: "answers of 1 KB, 64 at a time", Stream: true, Clients: 64, Prompt: 2000,
		Shape: Shape{Events: 25, Bytes: 20}},
	{Name: "answer100KB", Title: "answers of 100 KB, 64 at a time", Stream: true, Clients: 64, Prompt: 2000,
		Shape: Shape{Events: 2500, Bytes: 20}},
	{Name: "answer5MB", Title: "answers of 5 MB, 64 at a time", Stream: true, Clients: 64, Prompt: 2000,
		Shape: Shape{Events: 125_000, Bytes: 20}},
}

// names are those of the scenarios that are in no group.
func names() (all []string) {
	for _, s := range Scenarios {
		all = append(all, s.Name)
	}
	return all
}

// Named returns a scenario, or the group of that name.
func Named(name string) ([]Scenario, bool) {
	if name == "linear" {
		return Linear, true
	}
	for _, s := range append(Scenarios[:len(Scenarios):len(Scenarios)], Linear...) {
		if s.Name == name {
			return []Scenario{s}, true
		}
	}
	return nil, false
}
