package relay_test

import (
	"flag"
	"testing"

	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
)

var (
	simSeed = flag.Uint64("sim.seed", 1, "first seed of the simulator")
	simN    = flag.Int("sim.n", 150, "how many seeds per dialect")
)

var simWires = map[string]relaytest.Wire{
	"chat": {
		Dialect: chat.d, Render: chat.render, Half: chat.half, Marker: chat.marker, Ping: chat.ping,
		Request: `{"model":"sim","stream":true,"tools":[{"type":"function","function":{"name":"tool_0","parameters":{"type":"object"}}}],"messages":[{"role":"user","content":"go"}]`,
		Extras:  []string{`"stream_options":{"include_usage":true}`, `"temperature":0.5`},
		Faults: []string{
			chat.fault,
			`data: {"error":{"message":"busy","type":"rate_limit_error","code":"rate_limit_exceeded"}}` + "\n\n",
			`data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"error"}]}` + "\n\n",
		},
	},
	"completions": {
		Dialect: legacy.d, Render: legacy.render, Half: legacy.half, Marker: legacy.marker, Ping: legacy.ping,
		Request: `{"model":"sim","stream":true,"prompt":"go"`,
		Extras:  []string{`"stream_options":{"include_usage":true}`, `"suffix":"the end"`},
		Faults:  []string{legacy.fault, `data: {"error":{"message":"busy","type":"rate_limit_error","code":"rate_limit_exceeded"}}` + "\n\n"},
	},
	"messages": {
		Dialect: messages.d, Render: messages.render, Half: messages.half, Marker: messages.marker, Ping: messages.ping,
		Request: `{"model":"sim","max_tokens":100000,"stream":true,"tools":[{"name":"tool_0","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"go"}]`,
		Extras:  []string{`"system":"Be brief."`, `"thinking":{"type":"enabled","budget_tokens":2000}`},
		Faults:  []string{messages.fault, errEvent("api_error"), errEvent("rate_limit_error")},
	},
	"converse": {
		Dialect: converse.d, Render: converse.render, Half: converse.half, Marker: converse.marker, Ping: converse.ping,
		Request: `{"toolConfig":{"tools":[{"toolSpec":{"name":"tool_0","inputSchema":{"json":{"type":"object"}}}}]},"messages":[{"role":"user","content":[{"text":"go"}]}]`,
		Extras:  []string{`"system":[{"text":"Be brief."}]`, `"inferenceConfig":{"maxTokens":100000}`, `"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":2000}}`},
		Faults:  []string{converse.fault, exception("internalServerException"), exception("modelStreamErrorException")},
	},
	"invoke": {
		Dialect: invoke.d, Render: invoke.render, Half: invoke.half, Marker: invoke.marker, Ping: invoke.ping,
		Request: `{"anthropic_version":"bedrock-2023-05-31","max_tokens":100000,"tools":[{"name":"tool_0","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"go"}]`,
		Extras:  []string{`"system":"Be brief."`, `"thinking":{"type":"enabled","budget_tokens":2000}`},
		Faults:  []string{invoke.fault, exception("modelTimeoutException"), string(relaytest.Chunk([]byte(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)))},
	},
}

// TestSim plays seeded scenarios and checks the invariants of relaytest. A failure
// names its seed: go test ./relay -run Sim/chat -sim.seed=N -sim.n=1 -v
func TestSim(t *testing.T) {
	for _, f := range []family{chat, legacy, messages, converse, invoke} {
		t.Run(f.name, func(t *testing.T) {
			outcomes := map[string]int{}
			failed := 0
			for i := range *simN {
				seed := *simSeed + uint64(i)
				s, err := relaytest.Simulate(simWires[f.name], seed)
				if err == nil && s.End == relay.Clean && s.Head.Stream && !s.Events {
					_, err = f.read(s.Body)
				}
				if err != nil {
					t.Errorf("-sim.seed=%d: %v\nplans %v", seed, err, s.Plans())
					if *simN == 1 {
						t.Log(s.Transcript)
					}
					if failed++; failed >= 5 {
						t.Fatal("and so on")
					}
				}
				outcomes[s.Outcome()]++
				if i%50 == 0 {
					again, _ := relaytest.Simulate(simWires[f.name], seed)
					if again.Transcript != s.Transcript {
						t.Fatalf("-sim.seed=%d: two runs, two transcripts", seed)
					}
				}
			}
			t.Logf("%v", outcomes)
			if *simN >= 150 {
				for _, o := range []string{"completed", "healed", "complete_tool_call", "client_gone", "failed:budget_spent", "failed:drain"} {
					if o == "complete_tool_call" && f.d.Traits().Appends {
						continue // it has no tools
					}
					if outcomes[o] == 0 {
						t.Errorf("no scenario ended as %s: %v", o, outcomes)
					}
				}
			}
		})
	}
}
