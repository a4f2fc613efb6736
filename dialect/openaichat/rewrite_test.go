package openaichat

import (
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

const later = `{"id":"B","object":"chat.completion.chunk","created":99,"model":"other","provider":"P","choices":[`
const first = `data: {"id":"chatcmpl-A1","object":"chat.completion.chunk","created":17,"model":"m-1","provider":"P","choices":[`

func TestRewriteOneEvent(t *testing.T) {
	skip := func(kinds ...turn.Kind) func([]turn.Delta) {
		return func(ds []turn.Delta) {
			for i := range ds {
				for _, k := range kinds {
					if ds[i].Kind == k {
						ds[i].Kind = turn.Skip
					}
				}
			}
		}
	}
	// onto puts the event's only block on block n of the client's message.
	onto := func(n int, text string) func([]turn.Delta) {
		return func(ds []turn.Delta) {
			for i := range ds {
				switch ds[i].Kind {
				case turn.Head, turn.Open:
					ds[i].Kind = turn.Skip
				case turn.Text:
					ds[i].Block, ds[i].Text = n, []byte(text)
				case turn.Close, turn.Extra:
					ds[i].Block = n
				}
			}
		}
	}
	place := func(n, index int) func([]turn.Delta) {
		return func(ds []turn.Delta) {
			for i := range ds {
				if ds[i].Kind == turn.Head {
					ds[i].Kind = turn.Skip
				}
				ds[i].Block += n
				ds[i].Index += index
			}
		}
	}
	for _, c := range []struct {
		name, event string
		usage       bool
		edit        func([]turn.Delta)
		want        string
	}{
		{"words that stand there twice", later + `{"index":0,"delta":{"content":"xy"},"text":"xy","finish_reason":null}]}`, false, onto(0, "y"),
			first + `{"index":0,"delta":{"content":"y"},"text":"y","finish_reason":null}]}`},
		{"a text of its own beside a delta", later + `{"index":0,"delta":{"content":"xy"},"text":"other","finish_reason":null}]}`, false, onto(0, "y"),
			first + `{"index":0,"delta":{"content":"y"},"text":"other","finish_reason":null}]}`},
		{"identity, role and padding", later + `{"index":0,"delta":{"role":"assistant","content":"x","v":1},"finish_reason":null,"logprobs":null}],"obfuscation":"abc","error":null}`, false, onto(0, "x"),
			first + `{"index":0,"delta":{"content":"x","v":1},"finish_reason":null,"logprobs":null}]}`},
		{"what was cut is not shown", later + `{"index":0,"delta":{"content":"brown f\u006fx"},"finish_reason":null}]}`, false, onto(0, `f\u006fx`),
			first + `{"index":0,"delta":{"content":"f\u006fx"},"finish_reason":null}]}`},
		{"the head alone is nothing", later + `{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`, false, skip(turn.Head), ""},
		{"all cut is nothing", later + `{"index":0,"delta":{"content":"x"},"finish_reason":null}]}`, false, skip(turn.Head, turn.Open, turn.Text), ""},
		{"a missing object and created are supplied", `{"id":"B","choices":[{"index":0,"delta":{"content":"x"}}]}`, false, onto(0, "x"),
			`data: {"id":"chatcmpl-A1","choices":[{"index":0,"delta":{"content":"x"}}],"object":"chat.completion.chunk","created":17,"model":"m-1"}`},
		{"suppressed reasoning, shown text", later + `{"index":0,"delta":{"content":"x","reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm"}]},"finish_reason":null}]}`, false,
			func(ds []turn.Delta) { // head, open 0, text 0, close 0, open 1, text 1
				for i := range 5 {
					ds[i].Kind = turn.Skip
				}
				ds[5].Block = 0
			},
			first + `{"index":0,"delta":{"content":"x","reasoning":"","reasoning_details":[]},"finish_reason":null}]}`},
		{"thinking parts are rendered anew", later + `{"index":0,"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"abc"}]},"finish_reason":null}]}`, false,
			func(ds []turn.Delta) {
				for i := range 5 {
					ds[i].Kind = turn.Skip
				}
				ds[5].Block, ds[5].Text = 0, []byte("c")
			},
			first + `{"index":0,"delta":{"content":[{"type":"text","text":"c"}]},"finish_reason":null}]}`},
		{"a new call gets the client's index", later + `{"index":0,"delta":{"content":null,"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{"},"extra":{"sig":1}}]},"finish_reason":null}]}`, false, place(2, 1),
			first + `{"index":0,"delta":{"content":null,"tool_calls":[{"index":1,"id":"c","type":"function","function":{"name":"f","arguments":"{"},"extra":{"sig":1}}]},"finish_reason":null}]}`},
		{"id and name are not repeated", later + `{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{"}}]},"finish_reason":null}]}`, false, onto(1, "{"),
			first + `{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]},"finish_reason":null}]}`},
		{"arguments as an object stay what they are", later + `{"index":0,"delta":{"tool_calls":[{"id":"c","function":{"name":"f","arguments":{"a":1}}}]},"finish_reason":null}]}`, false, place(2, 1),
			first + `{"index":0,"delta":{"tool_calls":[{"index":1,"id":"c","function":{"name":"f","arguments":{"a":1}}}]},"finish_reason":null}]}`},
		{"one of two calls is dropped", later + `{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{}"}},{"index":1,"id":"d","type":"function","function":{"name":"g","arguments":"{\"q\":1}"}}]},"finish_reason":null}]}`, false,
			func(ds []turn.Delta) { // head, open 0, text 0, open 1, close 0, text 1
				for i := range ds {
					if ds[i].Kind == turn.Head || ds[i].Block == 0 {
						ds[i].Kind = turn.Skip
					} else {
						ds[i].Block = 2
					}
				}
			},
			first + `{"index":0,"delta":{"tool_calls":[{"index":1,"id":"d","type":"function","function":{"name":"g","arguments":"{\"q\":1}"}}]},"finish_reason":null}]}`},
		{"a finish", later + `{"index":0,"delta":{},"finish_reason":"stop","native_finish_reason":"end"}]}`, false, skip(turn.Head),
			first + `{"index":0,"delta":{},"finish_reason":"stop","native_finish_reason":"end"}]}`},
		{"a finish that is taken out, with its text", later + `{"index":0,"delta":{"content":"x"},"finish_reason":"stop","native_finish_reason":"end"}]}`, false,
			func(ds []turn.Delta) { onto(0, "x")(ds); skip(turn.Finish, turn.Close)(ds) },
			first + `{"index":0,"delta":{"content":"x"},"finish_reason":null,"native_finish_reason":null}]}`},
		{"usage that was not asked for", later + `],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`, false, skip(turn.Head), ""},
		{"usage beside a finish that was not asked for", later + `{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}`, false, skip(turn.Head),
			first + `{"index":0,"delta":{},"finish_reason":"stop"}]}`},
		{"usage null is asked for by nobody", later + `{"index":0,"delta":{"content":"x"},"finish_reason":null}],"usage":null}`, false, onto(0, "x"),
			first + `{"index":0,"delta":{"content":"x"},"finish_reason":null}]}`},
		{"usage of the whole turn", later + `],"usage":{"prompt_tokens":50,"completion_tokens":2,"total_tokens":60,"details":{"a":1}}}`, true,
			func(ds []turn.Delta) {
				skip(turn.Head)(ds)
				ds[len(ds)-1].Usage.Input, ds[len(ds)-1].Usage.Output = 9, 12
			},
			first + `],"usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":29,"details":{"a":1}}}`},
		{"usage null stays where usage was asked for", later + `{"index":0,"delta":{"content":"x"},"finish_reason":null}],"usage":null}`, true, onto(0, "x"),
			first + `{"index":0,"delta":{"content":"x"},"finish_reason":null}],"usage":null}`},
		{"usage under x_groq", later + `{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"r","usage":{"prompt_tokens":5,"completion_tokens":2}}}`, false, skip(turn.Head),
			first + `{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"r"}}`},
		{"logprobs that were taken out", later + `{"index":0,"delta":{"content":"x","annotations":[{"a":1}]},"logprobs":{"content":[{"token":"x"}]},"finish_reason":null}]}`, false,
			func(ds []turn.Delta) { onto(0, "x")(ds); skip(turn.Extra)(ds) },
			first + `{"index":0,"delta":{"content":"x"},"logprobs":null,"finish_reason":null}]}`},
		{"logprobs that are left", later + `{"index":0,"delta":{"content":"x"},"logprobs":{"content":[{"token":"x"}]},"finish_reason":null}]}`, false, onto(0, "x"),
			first + `{"index":0,"delta":{"content":"x"},"logprobs":{"content":[{"token":"x"}]},"finish_reason":null}]}`},
		{"a structure of a later year", later + `{"index":0,"delta":{"executed_tools":[{"a":1}]},"finish_reason":null}]}`, false, skip(turn.Head),
			first + `{"index":0,"delta":{"executed_tools":[{"a":1}]},"finish_reason":null}]}`},
		{"the end marker", `[DONE]`, false, skip(), `data: [DONE]`},
		{"a second end marker", `[DONE]`, false, skip(turn.Terminal), ""},
		{"a comment dressed up as data", `: keepalive`, false, skip(), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := request(t)
			r.IncludeUsage = c.usage
			e := dialecttest.Units(sse.Append(nil, "", []byte(c.event)))[0]
			ds, err := Dialect{}.NewDecoder(r).Decode(nil, e)
			if err != nil {
				t.Fatal(err)
			}
			c.edit(ds)
			said := spoken("The quick ")
			said.Blocks = append(said.Blocks, turn.Block{Kind: turn.Call, Name: "f", ID: "c"})
			got := string(Dialect{}.Rewrite(nil, r, e, ds, said))
			if want := c.want; got != want && got != want+"\n\n" || strings.Contains(got, "\n\n\n") {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

// OpenRouter repeats its finish in a chunk of its own. With its reason taken out,
// the repetition would reset accumulators that take the last reason they see.
func TestRewriteOfARepeatedFinishIsNothing(t *testing.T) {
	r := request(t)
	said := spoken("a")
	if err := said.Fold(turn.Delta{Kind: turn.Finish, Why: turn.Stopped, Text: []byte("stop")}); err != nil {
		t.Fatal(err)
	}
	event := later + `{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":"stop"}]`
	dec := primed(t, event+"}")
	for tail, want := range map[string]string{
		"}": "",
		`,"usage":{"prompt_tokens":1,"completion_tokens":2}}`: first + `],"usage":{"prompt_tokens":1,"completion_tokens":2}}` + "\n\n",
	} {
		e := sse.Event{Data: []byte(event + tail)}
		ds, err := dec.Decode(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(Dialect{}.Rewrite(nil, r, e, ds, said)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// The first attempt gave no head: the later one is the message's first.
func TestRewriteBeforeAnyHead(t *testing.T) {
	r := request(t)
	data := []byte(later + `{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`)
	e := sse.Event{Data: data}
	ds, err := Dialect{}.NewDecoder(r).Decode(nil, e)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(Dialect{}.Rewrite(nil, r, e, ds, new(turn.Snapshot))); got != "data: "+string(data)+"\n\n" {
		t.Errorf("got %s", got)
	}
}

// A turn that was finished once is not finished again (WIRE 3.1: "stopstop").
func TestRewriteOneFinishOnly(t *testing.T) {
	r := request(t)
	e := sse.Event{Data: []byte(later + `{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}`)}
	ds, err := Dialect{}.NewDecoder(r).Decode(nil, e)
	if err != nil {
		t.Fatal(err)
	}
	said := spoken("a")
	if err := said.Fold(turn.Delta{Kind: turn.Finish, Why: turn.Length, Text: []byte("length")}); err != nil {
		t.Fatal(err)
	}
	if got := string(Dialect{}.Rewrite(nil, r, e, ds, said)); strings.Contains(got, "stop") {
		t.Errorf("got %s", got)
	}
}

var _ dialect.Writer = Dialect{}
