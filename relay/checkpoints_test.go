package relay_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/gemini"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/interrupt"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

// The grammar is WIRE 1.4's: a token in a candidate is a point from which the same
// request goes on.
const decodeLong = `{"contents":[{"role":"user","parts":[{"text":"go"}]}],"generationConfig":{"maxOutputTokens":9000}}`

// gt is a chunk with a text, and a token if there is one, of attempt n.
func gt(n int, text, token string) []byte {
	more := ""
	if token != "" {
		more = `,"continuationToken":"` + token + `"`
	}
	return fmt.Appendf(nil, `data: {"candidates":[{"content":{"parts":[{"text":%s}],"role":"model"},"index":0%s}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":%d},"modelVersion":"gemini-4-pro","responseId":"r%d"}`+"\n\n", quoted(text), more, len(text), n)
}

func gend(n int) []byte {
	return fmt.Appendf(nil, `data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"modelVersion":"gemini-4-pro","responseId":"r%d"}`+"\n\n", n)
}

func reset(chunks ...[]byte) relaytest.Reply {
	return relaytest.Reply{Chunks: chunks, End: interrupt.Ended{How: interrupt.Reset}}
}

// framed is a framing of Gemini's, and a stream of events in it.
type framed struct {
	name  string
	d     dialect.Dialect
	reply func(relaytest.Reply) relaytest.Reply
}

// An array had no tokens: its decode, as long as any, began anew at every cut.
var framings = []framed{
	{"events", gemini.Dialect{}, func(r relaytest.Reply) relaytest.Reply { return r }},
	{"array", gemini.Array{}, func(r relaytest.Reply) relaytest.Reply {
		if r.Status == 0 {
			ended := bytes.Contains(bytes.Join(r.Chunks, nil), []byte(`"finishReason"`))
			if r.Chunks = inArray(r.Chunks); !ended {
				r.Chunks = r.Chunks[:len(r.Chunks)-1]
			}
		}
		return r
	}},
}

// eachFraming tells a story in both.
func eachFraming(t *testing.T, story func(t *testing.T, f framed)) {
	t.Helper()
	for _, f := range framings {
		t.Run(f.name, func(t *testing.T) { story(t, f) })
	}
}

func (f framed) fold(body []byte) (*turn.Snapshot, error) {
	s, _, err := relaytest.Fold(f.d, mustParse(f.d, []byte(decodeLong)), body)
	return s, err
}

// points tells a story of one request: its replies in order, and the token that each
// attempt behind the first must bring ("": none).
type points struct {
	replies []relaytest.Reply
	tokens  []string
}

func (p points) play(t *testing.T, f framed) relaytest.Result {
	t.Helper()
	w := relaytest.World{Dialect: f.d, Config: relay.Config{
		Targets: []relay.Target{{Name: "test", Ability: dialect.Ability{Manners: []turn.Manner{turn.Prefill}}}},
	}}
	res, err := w.Run([]byte(decodeLong), func(q relaytest.Request) relaytest.Reply {
		got, _ := jsonwalk.String(jsonwalk.Get(q.Body, "continuationToken"))
		if q.N > len(p.replies) || q.N > 1 && string(got) != p.tokens[q.N-2] {
			t.Fatalf("attempt %d brings %s", q.N, q.Body)
		}
		if len(got) > 0 && !bytes.HasPrefix(q.Body, []byte(strings.TrimSuffix(decodeLong, "}"))) {
			t.Fatalf("attempt %d is another request: %s", q.N, q.Body)
		}
		return f.reply(p.replies[q.N-1])
	})
	if err == nil && res.Broken != "" {
		err = fmt.Errorf("law: %s", res.Broken)
	}
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestCheckpointsAreGoneOnFrom(t *testing.T) { eachFraming(t, goesOnFromCheckpoints) }

func goesOnFromCheckpoints(t *testing.T, f framed) {
	const a, b, c, d = "The first part of a long decode, ", "and a second one that", " goes on past it", " to its end."
	for _, c := range []struct {
		name string
		points
		text  string
		plans string
	}{
		{"at the point itself", points{
			[]relaytest.Reply{reset(gt(1, a, ""), gt(1, b, "t1")), {Chunks: [][]byte{gt(2, c, ""), gt(2, d, ""), gend(2)}}}, []string{"t1"}},
			a + b + c + d, "[resume(provider_holds_generation)]"},
		{"behind it, which is said again", points{
			[]relaytest.Reply{reset(gt(1, a, "t1"), gt(1, b, "")), {Chunks: [][]byte{gt(2, b[:5], ""), gt(2, b[5:]+c, ""), gt(2, d, ""), gend(2)}}}, []string{"t1"}},
			a + b + c + d, "[resume(provider_holds_generation)]"},
		{"the newest of several, over several attempts", points{
			[]relaytest.Reply{reset(gt(1, a, "t1"), gt(1, b, "t2"), gt(1, c[:3], "")), reset(gt(2, c, "t3"), gt(2, d[:4], "")), {Chunks: [][]byte{gt(3, d, ""), gend(3)}}}, []string{"t2", "t3"}},
			a + b + c + d, "[resume(provider_holds_generation) resume(provider_holds_generation)]"},
		{"over an error of the provider's", points{
			[]relaytest.Reply{{Chunks: [][]byte{gt(1, a, "t1"), []byte(generate.fault)}}, {Chunks: [][]byte{gt(2, b+c+d, ""), gend(2)}}}, []string{"t1"}},
			a + b + c + d, "[resume(provider_holds_generation)]"},
		{"refused: it is continued, at no further price", points{
			[]relaytest.Reply{reset(gt(1, a, "t1"), gt(1, b, "")), {Status: 400, Chunks: [][]byte{[]byte(`{"error":{"code":400,"message":"The continuation token has expired.","status":"INVALID_ARGUMENT"}}`)}}, {Chunks: [][]byte{gt(3, c+d, ""), gend(3)}}}, []string{"t1", ""}},
			a + b + c + d, "[resume(provider_holds_generation) r1_continue_text(text)]"},
		{"something else is said behind it: that leaves no trace", points{
			[]relaytest.Reply{reset(gt(1, a, "t1"), gt(1, b, "")), {Chunks: [][]byte{gt(2, b[:9], ""), gt(2, "but nothing of the kind.", ""), gend(2)}}, {Chunks: [][]byte{gt(3, c+d, ""), gend(3)}}}, []string{"t1", ""}},
			a + b + c + d, "[resume(provider_holds_generation) r1_continue_text(text)]"},
		{"it ends before what was said", points{
			[]relaytest.Reply{reset(gt(1, a, "t1"), gt(1, b, "")), {Chunks: [][]byte{gt(2, b[:9], ""), gend(2)}}, {Chunks: [][]byte{gt(3, c+d, ""), gend(3)}}}, []string{"t1", ""}},
			a + b + c + d, "[resume(provider_holds_generation) r1_continue_text(text)]"},
		{"none: as ever", points{
			[]relaytest.Reply{reset(gt(1, a, ""), gt(1, b, "")), {Chunks: [][]byte{gt(2, c+d, ""), gend(2)}}}, []string{""}},
			a + b + c + d, "[r1_continue_text(text)]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := c.play(t, f)
			got, err := f.fold(res.Body)
			if err != nil || string(got.Prose()) != c.text || res.End != relay.Clean || fmt.Sprint(res.Plans()) != c.plans {
				t.Errorf("%v, %v %s %v\n%q\n%s", err, res.End, res.Outcome(), res.Plans(), got.Prose(), res.Body)
			}
			if s := res.Notes[len(res.Notes)-1].Summary; len(res.Plans()) == 2 && strings.Contains(c.name, "no further price") && s.Recoveries != 1 {
				t.Errorf("%d recoveries", s.Recoveries)
			}
			if !bytes.Contains(res.Body, []byte(`"r1"`)) || bytes.Contains(res.Body, []byte(`"r2"`)) {
				t.Error("two responses in one")
			}
		})
	}
}

// A complete call is not generated a second time, and one that the cut went through is.
func TestCheckpointsAndCalls(t *testing.T) { eachFraming(t, goesOnBesideCalls) }

func goesOnBesideCalls(t *testing.T, f framed) {
	call := func(args string, more string) []byte {
		return []byte(`data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"` + args + `}}],"role":"model"},"index":0` + more + `}],"modelVersion":"gemini-4-pro","responseId":"r1"}` + "\n\n")
	}
	res := points{[]relaytest.Reply{reset(gt(1, "One. ", "t1"), call(`,"args":{"a":1}`, ""))}, nil}.play(t, f)
	if p := fmt.Sprint(res.Plans()); p != "[r2_synthesize_tool_use(complete_tool_call)]" {
		t.Errorf("behind a whole call: %s", p)
	}
	res = points{[]relaytest.Reply{
		reset(gt(1, "One. ", "t1"), gt(1, "Two. ", ""), call(`,"willContinue":true`, "")),
		{Chunks: [][]byte{gt(2, "Two. ", ""), call(`,"args":{"a":1}`, `,"finishReason":"STOP"`)}},
	}, []string{"t1"}}.play(t, f)
	got, err := f.fold(res.Body)
	whole, cut := got.Calls()
	if err != nil || string(got.Prose()) != "One. Two. " || whole != 1 || cut != 0 {
		t.Errorf("%v: %q, %d calls, %d unfinished\n%s", err, got.Prose(), whole, cut, res.Body)
	}
}

// A process dies behind a checkpoint: its successor knows the token from the log.
func TestCheckpointsOutliveTheProcess(t *testing.T) { eachFraming(t, goesOnFromALog) }

func goesOnFromALog(t *testing.T, f framed) {
	w := relaytest.World{Dialect: f.d, Config: relay.Config{
		Targets: []relay.Target{{Name: "test", Ability: dialect.Ability{Manners: []turn.Manner{turn.Prefill}}}}, Flush: 1,
	}}
	dead, err := w.Kill([]byte(decodeLong), func(relaytest.Request) relaytest.Reply {
		return f.reply(relaytest.Reply{Chunks: [][]byte{gt(1, "One. ", "t1"), gt(1, "Two. ", ""), gt(1, "Three. ", "")}, Hang: true})
	})
	if err != nil {
		t.Fatal(err)
	}
	res, err := w.Resume([]byte(decodeLong), dead.Log, func(q relaytest.Request) relaytest.Reply {
		if !bytes.Contains(q.Body, []byte(`"continuationToken":"t1"`)) {
			t.Errorf("asked for %s", q.Body)
		}
		return f.reply(relaytest.Reply{Chunks: [][]byte{gt(2, "Two. Three. Four.", ""), gend(2)}})
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.fold(res.Body)
	if err != nil || string(got.Prose()) != "One. Two. Three. Four." {
		t.Errorf("%v: %q", err, got.Prose())
	}
}
