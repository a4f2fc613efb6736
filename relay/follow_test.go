package relay_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/relay"
	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

// The connection that drives a turn is lost at every event boundary, and a second
// one that followed it, by pieces of the log that respect no boundary, carries the
// turn on: its client gets one message, equal to the uncut one.
func TestFollowedAndThenLostMessages(t *testing.T) {
	messages.killedEverywhere(t, followed, relaytest.Recordings(t, messages.fallback, messages.named, messages.folders...))
}

func TestFollowedAndThenLostChat(t *testing.T) {
	chat.killedEverywhere(t, followed, relaytest.Recordings(t, chat.fallback, chat.named, chat.folders...))
}

func TestFollowedAndThenLostGemini(t *testing.T) {
	generate.killedEverywhere(t, followed, relaytest.Recordings(t, generate.fallback, generate.named, generate.folders...))
}

func TestFollowedAndThenLostGeminiArray(t *testing.T) {
	generateArray.killedEverywhere(t, followed, arrays(t))
}

func followed(w relaytest.World, request, log []byte, p relaytest.Provider) (relaytest.Result, error) {
	return w.Follow(request, log, 1+len(log)*7%977, p)
}

// A turn that is followed to its end is the same message for both clients, and the
// provider is asked by one of them only.
func TestFollowedToTheEnd(t *testing.T) {
	for _, f := range []family{messages, chat} {
		for _, r := range relaytest.Recordings(t, f.fallback, f.named, f.folders...) {
			if f.skip[r.Name] != "" {
				continue
			}
			t.Run(r.Name, func(t *testing.T) {
				t.Parallel()
				read := f.read
				if _, ok := f.strays[r.Name]; ok {
					read = f.readOwn
				}
				w := relaytest.World{Dialect: f.d, Config: relay.Config{Flush: 1}}
				first, err := w.Run(r.Request, func(relaytest.Request) relaytest.Reply {
					return relaytest.Reply{Chunks: pieces(r.Stream())}
				})
				if err != nil {
					t.Fatal(err)
				}
				if kept, err := turn.Replay(first.Log); err != nil || !kept.Finished() {
					t.Logf("not a turn that ended: %v", err)
					return
				}
				want, err := read(first.Body)
				if err != nil {
					t.Logf("not comparable: %v", err)
					return
				}
				for _, piece := range []int{61, 1 << 20} {
					res, err := w.Follow(r.Request, first.Log, piece, func(relaytest.Request) relaytest.Reply {
						t.Error("a follower asked the provider")
						return relaytest.Reply{}
					})
					if err != nil || res.Broken != "" || res.End != relay.Clean {
						t.Fatalf("pieces of %d: end %v, %v, law %q", piece, res.End, err, res.Broken)
					}
					got, err := read(res.Body)
					if err != nil {
						t.Fatalf("pieces of %d: %v in\n%s", piece, err, res.Body)
					}
					if got.String() != want.String() {
						t.Fatalf("pieces of %d: the message differs\n got %v\nwant %v", piece, got, want)
					}
				}
			})
		}
	}
}

// sampleLog is a chat turn of text and one call, and where in its log the call is
// complete.
func sampleLog(t *testing.T) (text, call, end []byte) {
	t.Helper()
	var s turn.Snapshot
	var m turn.Mark
	say := func(ds ...turn.Delta) []byte {
		for _, d := range ds {
			if err := s.Fold(d); err != nil {
				t.Fatal(err)
			}
		}
		return s.AppendSince(nil, &m)
	}
	text = say(
		turn.Delta{Kind: turn.Head, Raw: []byte(`{"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`)},
		turn.Delta{Kind: turn.Open, Of: turn.Prose}, turn.Delta{Kind: turn.Text, Text: []byte("Let me look. ")},
		turn.Delta{Kind: turn.Open, Of: turn.Call, Block: 1, ID: []byte("call_1"), Name: []byte("look")}, turn.Delta{Kind: turn.Text, Block: 1, Text: []byte(`{\"at\":`)},
	)
	call = say(turn.Delta{Kind: turn.Text, Block: 1, Text: []byte(`1}`)})
	end = say(turn.Delta{Kind: turn.Close, Block: 1}, turn.Delta{Kind: turn.Finish, Why: turn.ToolUse, Text: []byte("tool_calls")}, turn.Delta{Kind: turn.Terminal})
	return text, call, end
}

func sampleFollower(now time.Time) *relay.Follower {
	d := chat.d
	req, err := d.Parse([]byte(`{"model":"m","stream":true,"messages":[]}`))
	if err != nil {
		panic(err)
	}
	return relay.Follow(relay.Config{}, d, req, now)
}

// What makes a client act comes alone and marked, so that only the newest
// connection of a turn gets it; an older one ends with an error.
func TestFollowerMarksWhatActs(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	f := sampleFollower(now)
	text, call, end := sampleLog(t)
	read := func(more []byte) {
		t.Helper()
		if err := f.Read(more, false); err != nil {
			t.Fatal(err)
		}
	}
	read(text)
	fx := f.Next(now)
	if fx.Head == nil || fx.Persist.Durable || !bytes.Contains(fx.Client, []byte("Let me look. ")) || bytes.Contains(fx.Client, []byte("tool_calls")) {
		t.Fatalf("text: %+v %s", fx, fx.Client)
	}
	if fx = f.Next(now); len(fx.Client) > 0 {
		t.Fatalf("an unfinished call left: %s", fx.Client)
	}
	read(call)
	if fx = f.Next(now); !fx.Persist.Durable || !bytes.Contains(fx.Client, []byte(`"call_1"`)) {
		t.Fatalf("call: %+v %s", fx, fx.Client)
	}
	read(end)
	if fx = f.Next(now); !fx.Persist.Durable || fx.End != relay.Clean || !bytes.Contains(fx.Client, []byte("[DONE]")) {
		t.Fatalf("end: %+v %s", fx, fx.Client)
	}
	if !f.Done() {
		t.Error("it goes on")
	}
}

func TestFollowerWithAnOlderConnectionFails(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	why := dialect.Failure{Status: 409, Reason: "fenced", Message: "a newer connection has taken this turn over"}
	f := sampleFollower(now)
	text, _, _ := sampleLog(t)
	if err := f.Read(text, false); err != nil {
		t.Fatal(err)
	}
	f.Next(now)
	if fx := f.Fail(now, why); fx.End != relay.Abort || !bytes.Contains(fx.Client, []byte("newer connection")) {
		t.Errorf("after text: %+v %s", fx, fx.Client)
	}
	f = sampleFollower(now)
	if fx := f.Fail(now, why); fx.End != relay.Clean || fx.Head == nil || fx.Head.Status != 409 {
		t.Errorf("before anything: %+v", fx)
	}
}

func TestFollowerBeatsWhileNothingIsAdded(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	f := sampleFollower(now)
	text, _, _ := sampleLog(t)
	_ = f.Read(text, false)
	f.Next(now)
	at := f.Deadline()
	if fx := f.Next(at.Add(-time.Millisecond)); len(fx.Client) > 0 {
		t.Errorf("too early: %q", fx.Client)
	}
	if fx := f.Next(at); !bytes.HasPrefix(fx.Client, []byte(":")) {
		t.Errorf("heartbeat %q", fx.Client)
	}
}

// A log that takes back what this client has, or that is damaged, cannot be
// followed any further.
func TestFollowerRefusesWhatCannotBe(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	text, _, _ := sampleLog(t)
	f := sampleFollower(now)
	if err := f.Read(text, false); err != nil {
		t.Fatal(err)
	}
	f.Next(now)
	var m turn.Mark
	said, err := m.Replay(text)
	if err != nil {
		t.Fatal(err)
	}
	said.Truncate(0)
	m.Recede(said)
	if err := f.Read(said.AppendSince(nil, &m), false); err == nil {
		t.Error("what the client has was taken back and nobody minds")
	}
	f = sampleFollower(now)
	text[len(text)/2] ^= 1
	if err := f.Read(text, true); !errors.Is(err, turn.ErrCorrupt) {
		t.Errorf("damage: %v", err)
	}
}
