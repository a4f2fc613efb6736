package gemini

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/dialect"
	"github.com/unbroken-llm/unbroken/dialect/dialecttest"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// element appends a chunk to an array as Google writes it.
func element(dst []byte, _ string, data []byte) []byte {
	open := "[" // Google: "[{", then "\n,\r\n{"
	if len(dst) > 0 {
		open = "\n,\r\n"
	}
	return append(append(dst, open...), data...)
}

// inArray is an event stream as the request without alt=sse gets it.
func inArray(stream []byte) []byte {
	var out []byte
	for _, e := range dialecttest.Units(stream) {
		if e.Data != nil {
			out = element(out, "", e.Data)
		}
	}
	return append(out, "\n]\n"...)
}

// The array says what the event stream says: every golden case is one of
// both framings.
func TestArrayPassesTheBattery(t *testing.T) {
	var cases []dialecttest.Case
	for _, c := range dialecttest.Golden(t, Dialect{}, "testdata") {
		if slices.Contains(apart, c.Name) {
			continue
		}
		c.Stream, c.Frame = inArray(c.Stream), element
		cases = append(cases, c)
	}
	dialecttest.Run(t, Array{}, cases)
}

// scanned is what a scanner makes of a body that comes in pieces of that size.
func scanned(body string, size, limit int) (units []sse.Event, rest string, err error) {
	s := Array{}.NewScanner(limit)
	piece := make([]byte, size)
	for len(body) > 0 {
		n := copy(piece, body)
		body = body[n:]
		s.Push(piece[:n])
		for e, ok := s.Next(); ok; e, ok = s.Next() {
			units = append(units, sse.Event{Data: bytes.Clone(e.Data), Raw: bytes.Clone(e.Raw)})
		}
		copy(piece, "################") // it is ours again
	}
	e, _ := s.Rest()
	return units, string(e.Raw), s.Err()
}

func TestElements(t *testing.T) {
	for _, c := range []struct{ name, body, data, rest string }{
		{"as Google writes it", "[{\r\n  \"a\": 1\r\n}\r\n,\r\n{\"b\":\"]},\\\"{\\\\\"}\n]", "{\r\n  \"a\": 1\r\n}|{\"b\":\"]},\\\"{\\\\\"}|]", ""},
		{"in one line", `[{"a":[1,{}]},{"b":{}}]`, `{"a":[1,{}]}|{"b":{}}|]`, ""},
		{"nothing", "[ ]", "]", ""},
		{"behind a BOM", "\xef\xbb\xbf [{}]", "{}|]", ""},
		{"cut in an element", `[{"a":1},{"b`, `{"a":1}`, `,{"b`},
		{"cut in a string that looks whole", `[{"a":"}]`, ``, `[{"a":"}]`},
		{"cut behind a comma", "[{}\n,", "{}", "\n,"},
		{"cut behind an element", "[{}\n", "{}", "\n"},
		{"an error without a comma", "[{}\n{\"error\":{}}", "{}|{\"error\":{}}", ""},
		{"what is no chunk", `[null,12,"a]",[3],tru ,{}]`, `null|12|"a]"|[3]|tru|{}|]`, ""},
		{"no JSON", "[{},data: {\"x", "{}|data:", " {\"x"},
		{"a stray bracket", "[{}}]", "{}|}|]", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, size := range []int{1, 2, 3, 7, 1000} {
				units, rest, err := scanned(c.body, size, 0)
				var data []string
				var raw string
				for _, u := range units {
					data, raw = append(data, string(u.Data)), raw+string(u.Raw)
				}
				if got := strings.Join(data, "|"); got != c.data || rest != c.rest || err != nil {
					t.Errorf("by %d: %s, then %q, %v", size, got, rest, err)
				}
				if raw+rest != c.body {
					t.Errorf("by %d: bytes are lost: %q", size, raw+rest)
				}
			}
		})
	}
	t.Run("the white space in hand goes with the end", func(t *testing.T) {
		if units, _, _ := scanned("[{}]\r\n", 100, 0); len(units) != 2 || string(units[1].Raw) != "]\r\n" {
			t.Errorf("got %q", units)
		}
	})
	t.Run("too long, whole or not", func(t *testing.T) {
		for _, body := range []string{`[{},{"a":"0123456789"}]`, `[{},{"a":"0123456789`, "[{},            "} {
			for _, size := range []int{1, 100} {
				if units, _, err := scanned(body, size, 12); !errors.Is(err, sse.ErrTooLong) || len(units) != 1 {
					t.Errorf("%q by %d: %d units, %v", body, size, len(units), err)
				}
			}
		}
	})
	t.Run("no allocation for an element", func(t *testing.T) {
		s := Array{}.NewScanner(0)
		s.Push([]byte("["))
		piece := []byte(`,` + parts(`{"text":"Hi"}`))
		if n := testing.AllocsPerRun(100, func() {
			s.Push(piece[:20])
			s.Next()
			s.Push(piece[20:])
			if _, ok := s.Next(); !ok {
				t.Error("no element")
			}
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// FuzzElements: split anywhere, every byte of an array is in some unit, and its
// elements are those that encoding/json reads.
func FuzzElements(f *testing.F) {
	f.Add([]byte("[{\n  \"a\": \"]\\\"}\"\r\n}\n,\r\n{\"b\": [1, {}]}\n]\n"), uint8(3))
	f.Add([]byte(`[1,"a\\",tru`), uint8(1))
	f.Fuzz(func(t *testing.T, body []byte, size uint8) {
		units, rest, err := scanned(string(body), int(size)+1, 0)
		var raw, data []byte
		var want []json.RawMessage
		sound := json.Unmarshal(body, &want) == nil && want != nil
		for i, u := range units {
			raw = append(raw, u.Raw...)
			if i < len(want) && sound && !bytes.Equal(u.Data, want[i]) {
				t.Errorf("element %d: %s, want %s", i, u.Data, want[i])
			}
			data = u.Data
		}
		if err != nil || string(raw)+rest != string(body) {
			t.Errorf("%q and %q of %q, %v", raw, rest, body, err)
		}
		if sound && (len(units) != len(want)+1 || string(data) != closing || strings.TrimSpace(rest) != "") {
			t.Errorf("%d units of %d elements", len(units), len(want))
		}
	})
}

// Whatever is written first begins the array, whatever follows has a comma, and only
// a good end closes it.
func TestEveryWriteOfAnArrayIsPartOfOne(t *testing.T) {
	a, r := Array{}, request(t)
	first, second := parts(`{"text":"Hi "}`), parts(`{"text":"there"}`)
	full := func() *turn.Snapshot { return said(t, first) }
	begun := func() *turn.Snapshot { s := said(t, first); s.Seq = 1; return s }
	again := func(s *turn.Snapshot, data string) []byte {
		e := sse.Event{Data: []byte(data), Raw: []byte("[" + data)}
		ds, err := a.NewDecoder(r).Decode(nil, e)
		if err != nil {
			t.Fatal(err)
		}
		return a.Rewrite(nil, r, e, ds, s)
	}
	ending := dialect.Ending{Why: turn.Stopped}
	for name, c := range map[string]struct {
		said   *turn.Snapshot
		write  func(s *turn.Snapshot) []byte
		before string
		n      int // elements
		open   bool
	}{
		"a rewrite at the front":     {full(), func(s *turn.Snapshot) []byte { return again(s, second) }, "", 1, true},
		"a rewrite":                  {begun(), func(s *turn.Snapshot) []byte { return again(s, second) }, "[" + first, 2, true},
		"the end of another array":   {begun(), func(s *turn.Snapshot) []byte { return again(s, closing) }, "[" + first, 1, false},
		"a replay":                   {full(), func(s *turn.Snapshot) []byte { return a.Replay(nil, r, s) }, "", 1, true},
		"an end at the front":        {full(), func(s *turn.Snapshot) []byte { return a.Finish(nil, r, s, ending) }, "", 1, false},
		"an end":                     {begun(), func(s *turn.Snapshot) []byte { return a.Finish(nil, r, s, ending) }, "[" + first, 2, false},
		"an end without its bracket": {begun(), func(s *turn.Snapshot) []byte { return a.Finish(nil, r, s, dialect.Ending{FinishSent: true}) }, "[" + first, 1, false},
		"an error at the front":      {full(), func(s *turn.Snapshot) []byte { return a.Fail(nil, s, dialect.Failure{}) }, "", 1, true},
		"an error":                   {begun(), func(s *turn.Snapshot) []byte { return a.Fail(nil, s, dialect.Failure{}) }, "[" + first, 2, true},
		"an error behind the bracket": {full(), func(s *turn.Snapshot) []byte {
			return a.Undrip(nil, a.Fail(nil, s, dialect.Failure{}), s)
		}, string(a.Drip(a.Drip(nil, &turn.Snapshot{}, false), &turn.Snapshot{}, true)), 1, true},
		"a drip between elements": {begun(), func(s *turn.Snapshot) []byte {
			return append(a.Drip(a.Drip(nil, s, false), s, true), a.Undrip(nil, again(s, second), s)...)
		}, "[" + first, 2, true},
		"nothing but an end": {&turn.Snapshot{}, func(s *turn.Snapshot) []byte {
			return a.Finish(nil, r, s, dialect.Ending{FinishSent: true})
		}, "", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			stream := c.before + string(c.write(c.said))
			if !strings.HasPrefix(stream, "[") {
				t.Errorf("an old client of Google's takes this for no array: %q", stream)
			}
			whole := stream
			if c.open {
				if json.Valid([]byte(stream)) {
					t.Fatalf("the array is closed: %q", stream)
				}
				whole += "]"
			}
			var got []json.RawMessage
			if err := json.Unmarshal([]byte(whole), &got); err != nil || len(got) != c.n {
				t.Errorf("%d elements, %v: %q", len(got), err, stream)
			}
		})
	}
}
