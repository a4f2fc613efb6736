package gauge

import "time"

// Scenario is a load.
type Scenario struct {
	Name    string
	Title   string
	Shape   Shape
	Stream  bool
	Clients int
	Prompt  int // bytes
	// Memory: the streams stay open long enough for memory to be told.
	Memory bool
}

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
}

// Named returns a scenario of the table.
func Named(name string) (Scenario, bool) {
	for _, s := range Scenarios {
		if s.Name == name {
			return s, true
		}
	}
	return Scenario{}, false
}
