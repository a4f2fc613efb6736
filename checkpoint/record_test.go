package checkpoint

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func sample() *Record {
	return &Record{
		Run: "run-1", Thread: "thread", Step: -1, Fingerprint: Fingerprint{1, 2, 31: 9}, Dialect: "messages", Route: "r", Model: "claude",
		Owner: "host/1", Created: time.UnixMicro(1_700_000_000_000_001).UTC(), Updated: time.UnixMicro(1_700_000_000_000_002).UTC(),
		State: State{Phase: Broken, Seen: 12, Attempt: 3, Recoveries: 2, Causes: []string{"idle_stall", "go_away"}},
		Log:   []byte("\x01some log\x00"),
	}
}

func TestRecordRoundTrip(t *testing.T) {
	for name, r := range map[string]*Record{
		"everything": sample(),
		"nothing":    {},
		"no log":     {Run: "r", State: State{Seen: math.MaxInt64}},
		"epoch":      {Created: time.Unix(0, 0).UTC()},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := r.AppendBinary([]byte("before"))
			if err != nil {
				t.Fatal(err)
			}
			b = b[len("before"):]
			got, err := DecodeRecord(b)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, r) {
				t.Errorf("got  %+v\nwant %+v", got, r)
			}
			again, _ := got.AppendBinary(nil)
			if !bytes.Equal(again, b) {
				t.Errorf("not canonical:\n%x\n%x", b, again)
			}
			b, _ = r.State.AppendBinary(nil)
			if state, err := DecodeState(b); err != nil || !reflect.DeepEqual(state, r.State) {
				t.Errorf("state %+v, %v", state, err)
			}
		})
	}
}

// Corrupt is an error and never "absent".
func TestDamagedRecordsAreCorrupt(t *testing.T) {
	whole, _ := sample().AppendBinary(nil)
	for n := range len(whole) {
		if _, err := DecodeRecord(whole[:n]); !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut to %d of %d: %v", n, len(whole), err)
		}
	}
	for i := 1; i < len(whole); i++ {
		bad := bytes.Clone(whole)
		bad[i] ^= 0x10
		if _, err := DecodeRecord(bad); !errors.Is(err, ErrCorrupt) {
			t.Errorf("byte %d: %v", i, err)
		}
	}
	newer := bytes.Clone(whole)
	newer[0] = version + 1
	if _, err := DecodeRecord(newer); !errors.Is(err, ErrVersion) || errors.Is(err, ErrCorrupt) {
		t.Errorf("newer version: %v", err)
	}
	state, _ := (&State{Causes: make([]string, MaxCauses+1)}).AppendBinary(nil)
	if _, err := DecodeState(state); !errors.Is(err, ErrCorrupt) {
		t.Errorf("too many causes: %v", err)
	}
	for name, s := range map[string]State{"phase": {Phase: Finished + 1}, "seen": {Seen: -1}, "attempt": {Attempt: -1}} {
		b, _ := s.AppendBinary(nil)
		if _, err := DecodeState(b); !errors.Is(err, ErrCorrupt) {
			t.Errorf("bad %s: %v", name, err)
		}
	}
}

func FuzzDecodeRecord(f *testing.F) {
	whole, _ := sample().AppendBinary(nil)
	f.Add(whole[:len(whole)-4])
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeRecord(seal(bytes.Clone(b), 0)) // a sound sum, so that the rest is tried
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
				t.Errorf("unnamed error %v", err)
			}
			return
		}
		again, _ := r.AppendBinary(nil)
		if back, err := DecodeRecord(again); err != nil || !reflect.DeepEqual(back, r) {
			t.Errorf("%v: %+v became %+v", err, r, back)
		}
	})
}

func TestTheFirstCauseIsKept(t *testing.T) {
	var s State
	s.AddCause("first")
	shared := s
	for range 3 * MaxCauses {
		s.AddCause("more")
	}
	s.AddCause("last")
	if len(s.Causes) != MaxCauses || s.Causes[0] != "first" || s.Causes[MaxCauses-1] != "last" {
		t.Errorf("causes %q", s.Causes)
	}
	if shared.Causes[0] != "first" || len(shared.Causes) != 1 {
		t.Errorf("an older state changed: %q", shared.Causes)
	}
}

func TestRunIDs(t *testing.T) {
	for _, good := range []string{"a", "run-1", "550e8400-e29b-41d4-a716-446655440000", "user:7#x?%2F", "...", strings.Repeat("x", MaxRunID)} {
		if id, err := ParseRunID(good); err != nil || string(id) != good {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", ".", "..", "a/b", `a\b`, "../../etc", "a b", "a\nb", "a\x00", "\x7f", "é", strings.Repeat("x", MaxRunID+1)} {
		if _, err := ParseRunID(bad); !errors.Is(err, ErrRunID) {
			t.Errorf("%q accepted: %v", bad, err)
		}
	}
}

// Whatever differs in a request gives another turn, also when the same bytes are
// only divided otherwise.
func TestKeysTellRequestsApart(t *testing.T) {
	base := Request{Method: "POST", Path: "/v1/messages", Query: "beta=true", Versions: []string{"2023-06-01", "tools"}, Body: []byte("{}")}
	variants := map[string]Request{"base": base}
	change := func(name string, f func(*Request)) {
		r := base
		f(&r)
		variants[name] = r
	}
	change("method", func(r *Request) { r.Method = "PUT" })
	change("path", func(r *Request) { r.Path = "/v1/messages/" })
	change("query", func(r *Request) { r.Query = "" })
	change("divided", func(r *Request) { r.Path, r.Query = "/v1/messagesb", "eta=true" })
	change("version", func(r *Request) { r.Versions = []string{"2026-10-21", "tools"} })
	change("joined", func(r *Request) { r.Versions = []string{"2023-06-01tools"} })
	change("no beta", func(r *Request) { r.Versions = r.Versions[:1] })
	change("moved", func(r *Request) { r.Versions, r.Body = r.Versions[:1], []byte("tools{}") })
	change("body", func(r *Request) { r.Body = []byte("{} ") })
	seen := map[TurnKey]string{}
	note := func(name string, k TurnKey) {
		if other, ok := seen[k]; ok {
			t.Errorf("%s and %s are one turn", name, other)
		}
		seen[k] = name
	}
	for name, r := range variants {
		note(name, Turn(Scope{1}, "run", r.Fingerprint()))
	}
	note("another run", Turn(Scope{1}, "run2", base.Fingerprint()))
	note("no run", Turn(Scope{1}, "", base.Fingerprint()))
	note("another caller", Turn(Scope{2}, "run", base.Fingerprint()))
	again := base
	if Turn(Scope{1}, "run", base.Fingerprint()) != Turn(Scope{1}, "run", again.Fingerprint()) {
		t.Error("not deterministic")
	}
}

// Replicas of different builds must agree on the keys of one store.
func TestKeysAreFrozen(t *testing.T) {
	f := Request{Method: "POST", Path: "/v1/chat/completions", Body: []byte("{}")}.Fingerprint()
	const (
		wantF = "e0740655bd16d04386773bf3546b237f3a1219d1f032db6421bbd608cd31f3e2"
		wantK = "e493fa7b7d0a8482820880d60f2b88cdf167dd5d76f5f7279441a2f98ab0019c"
	)
	if f.String() != wantF {
		t.Errorf("fingerprint %s", f)
	}
	if k := Turn(Scope{7}, "run", f); k.String() != wantK {
		t.Errorf("key %s", k)
	}
}

func TestFencesGrowWithAndWithoutTheClock(t *testing.T) {
	now := time.UnixMicro(1000)
	for _, tc := range []struct {
		previous uint64
		now      time.Time
		want     uint64
	}{
		{0, now, 1000}, {999, now, 1000}, {1000, now, 1001}, {5000, now, 5001}, {0, time.Time{}, 1}, {7, time.Unix(-9, 0), 8},
	} {
		if got := NextFence(tc.previous, tc.now); got != tc.want {
			t.Errorf("after %d at %v: %d, want %d", tc.previous, tc.now, got, tc.want)
		}
	}
}

func TestPhasesHaveNames(t *testing.T) {
	if Live.String() != "live" || Finished.String() != "finished" || (Finished+1).String() != "phase?" {
		t.Error("a phase and its name disagree")
	}
}
