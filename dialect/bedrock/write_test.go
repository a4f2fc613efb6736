package bedrock

import (
	"bytes"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/eventstream"
	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// A message that is told from its start reads as it was read, block by block.
func TestReplayReadsTheSame(t *testing.T) {
	for dir, d := range map[string]dialect.Dialect{"testdata/converse": Converse{}, "testdata/invoke": Invoke{}} {
		for _, c := range dialecttest.GoldenIn(t, d, dir, framed) {
			req := dialecttest.Parse(t, d, c.Request)
			said := dialecttest.Read(t, d, req, c.Stream)
			again := dialecttest.Read(t, d, req, d.Replay(nil, req, said))
			for _, s := range []*turn.Snapshot{said, again} {
				s.Truncate(len(s.Blocks)) // the end is not part of it
			}
			if got, want := dialecttest.Format(again), dialecttest.Format(said); got != want {
				t.Errorf("%s: got\n%swant\n%s", c.Name, got, want)
			}
		}
	}
}

func units(d dialect.Dialect, stream ...[]byte) (out [][]turn.Delta, data [][]byte) {
	dec := d.NewDecoder(nil)
	for _, e := range dialecttest.UnitsOf(d, bytes.Join(stream, nil)) {
		ds, _ := dec.Decode(nil, e)
		out, data = append(out, ds), append(data, e.Data)
	}
	return out, data
}

// The usage of a later attempt becomes the whole turn's; what else its last frame holds stays, and the total moves along.
func TestRewriteMergesUsage(t *testing.T) {
	said := &turn.Snapshot{Head: []byte(`{"role":"assistant"}`)}
	last := event(nil, "metadata", []byte(`{"metrics":{"latencyMs":5},"p":"ab","trace":{"g":1},"usage":{"inputTokens":20,"outputTokens":5,"totalTokens":125,"cacheReadInputTokens":100}}`))
	ds, _ := units(Converse{}, last)
	ds[0][0].Usage.Input, ds[0][0].Usage.Output = 12, 15
	_, data := units(Converse{}, Converse{}.Rewrite(nil, nil, dialecttest.UnitsOf(Converse{}, last)[0], ds[0], said))
	want := `{"metrics":{"latencyMs":5},"p":"ab","trace":{"g":1},"usage":{"inputTokens":12,"outputTokens":15,"totalTokens":127,"cacheReadInputTokens":100}}`
	if len(data) != 1 || string(data[0]) != want {
		t.Errorf("got %s\nwant %s", data, want)
	}

	said.Usage = turn.Usage{Known: true, Input: 12, Output: 15}
	stop := appendChunk(nil, []byte(`{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":20,"outputTokenCount":5,"invocationLatency":7}}`))
	ds, _ = units(Invoke{}, stop)
	_, data = units(Invoke{}, Invoke{}.Rewrite(nil, nil, dialecttest.UnitsOf(Invoke{}, stop)[0], ds[0], said))
	want = `{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":12,"outputTokenCount":15,"invocationLatency":7}}`
	if len(data) != 1 || string(data[0]) != want {
		t.Errorf("got %s\nwant %s", data, want)
	}
}

func TestRewriteKeepsHeadersAndPadding(t *testing.T) {
	said := &turn.Snapshot{Head: []byte(`{"role":"assistant"}`), Blocks: []turn.Block{{Kind: turn.Prose, Index: 3, Text: []byte("One ")}}}
	f, _, err := eventstream.Read(blockDelta(nil, 0, []byte(`{"text":"One two"}`)), 0)
	if err != nil {
		t.Fatal(err)
	}
	f.Headers = append(bytes.Clone(f.Headers), "\x05:more\x07\x00\x01x"...)
	later := f.Reload(nil, []byte(`{"contentBlockIndex":0,"delta":{"text":"One two"},"p":"abc"}`))
	e := dialecttest.UnitsOf(Converse{}, later)[0]
	ds := []turn.Delta{{Kind: turn.Skip}, {Kind: turn.Text, Block: 0, Text: []byte("two")}}
	got, _, err := eventstream.Read(Converse{}.Rewrite(nil, nil, e, ds, said), 0)
	if want := `{"contentBlockIndex":3,"delta":{"text":"two"},"p":"abc"}`; err != nil || string(got.Payload) != want || string(got.Header(":more")) != "x" {
		t.Errorf("got %s %q, %v; want %s", got.Payload, got.Headers, err, want)
	}
}

// A block that opens with a delta is open only if the client hears of it.
func TestABlockWhoseFirstTextIsCutOpensEmpty(t *testing.T) {
	said := &turn.Snapshot{Head: []byte(`{"role":"assistant"}`)}
	e := dialecttest.UnitsOf(Converse{}, blockDelta(nil, 4, []byte(`{"text":"One"}`)))[0]
	ds := []turn.Delta{{Kind: turn.Open, Of: turn.Prose, Index: 1}, {Kind: turn.Skip}}
	_, data := units(Converse{}, Converse{}.Rewrite(nil, nil, e, ds, said))
	if len(data) != 1 || string(data[0]) != `{"contentBlockIndex":1,"delta":{"text":""}}` {
		t.Errorf("got %s", data)
	}
}

func TestWhatIsUnfinishedIsNeverMadeRunnable(t *testing.T) {
	half := turn.Block{Kind: turn.Call, ID: "tooluse_A", Name: "f", Text: []byte(`{\"a`)}
	thinking := turn.Block{Kind: turn.Reasoning, Index: 1, Text: []byte("hm"), Signature: []byte("half")}
	said := &turn.Snapshot{Blocks: []turn.Block{half, thinking}}
	for _, d := range []dialect.Dialect{Converse{}, Invoke{}} {
		if out := d.Emit(nil, nil, said, 0); out != nil {
			t.Errorf("%s: half a call is emitted: %q", d.Name(), out)
		}
		if out := d.CloseBlock(nil, said, 0); out != nil {
			t.Errorf("%s: half a call is closed: %q", d.Name(), out)
		}
		_, data := units(d, d.Finish(nil, nil, said, dialect.Ending{Why: turn.Stopped, Usage: turn.Usage{Known: true, Input: 1, Output: 2}}))
		all := string(bytes.Join(data, []byte("\n")))
		if strings.Count(all, turn.DropMark) != 1 || strings.Contains(all, "half") {
			t.Errorf("%s: unfinished reasoning ends as %s", d.Name(), all)
		}
		for _, p := range data {
			if string(jsonwalk.Get(p, "contentBlockIndex")) == "0" || string(jsonwalk.Get(p, "index")) == "0" {
				t.Errorf("%s: the finish closes half a call: %s", d.Name(), p)
			}
		}
	}
}

func TestFinishWithoutARecordHasNoMetadata(t *testing.T) {
	if out := (Converse{}).Finish(nil, nil, &turn.Snapshot{}, dialect.Ending{FinishSent: true}); out != nil {
		t.Errorf("got %q", out)
	}
	_, data := units(Converse{}, Converse{}.Finish(nil, nil, &turn.Snapshot{}, dialect.Ending{Why: turn.Length, Usage: turn.Usage{Known: true, Input: 3, Output: 4}}))
	want := []string{`{"stopReason":"max_tokens"}`, `{"usage":{"inputTokens":3,"outputTokens":4,"totalTokens":7},"metrics":{"latencyMs":0}}`}
	if len(data) != 2 || string(data[0]) != want[0] || string(data[1]) != want[1] {
		t.Errorf("got %s", data)
	}
}

func TestBrokenStreamsAreErrors(t *testing.T) {
	for _, c := range []struct {
		name   string
		d      dialect.Dialect
		frames [][]byte
		want   error
	}{
		{"a second start", Converse{}, [][]byte{event(nil, "messageStart", []byte(`{}`)), event(nil, "messageStart", []byte(`{}`))}, ErrSecondStart},
		{"no index", Converse{}, [][]byte{event(nil, "contentBlockDelta", []byte(`{"delta":{"text":"a"}}`))}, ErrIndex},
		{"arguments of no call", Converse{}, [][]byte{blockDelta(nil, 0, []byte(`{"toolUse":{"input":"{"}}`))}, ErrNoBlock},
		{"text in a call", Converse{}, [][]byte{blockStart(nil, &turn.Block{Name: "f"}), blockDelta(nil, 0, []byte(`{"text":"a"}`))}, ErrDeltaKind},
		{"a block opened twice", Converse{}, [][]byte{blockStart(nil, &turn.Block{Name: "f"}), blockStart(nil, &turn.Block{Name: "g"})}, ErrIndexInUse},
		{"half a payload", Converse{}, [][]byte{event(nil, "contentBlockDelta", []byte(`{"contentBlockIndex":0,"delta":`))}, ErrJSON},
		{"a chunk without bytes", Invoke{}, [][]byte{event(nil, "chunk", []byte(`{"p":"abc"}`))}, ErrChunk},
		{"a chunk of no base64", Invoke{}, [][]byte{event(nil, "chunk", []byte(`{"bytes":"***"}`))}, ErrChunk},
	} {
		t.Run(c.name, func(t *testing.T) {
			dec := c.d.NewDecoder(nil)
			var err error
			for _, e := range dialecttest.UnitsOf(c.d, bytes.Join(c.frames, nil)) {
				if _, err = dec.Decode(nil, e); err != nil {
					break
				}
			}
			if err != c.want {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
