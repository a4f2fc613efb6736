package sse

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// unit is an Event that owns its memory; nil and empty stay apart.
type unit struct {
	name, data *string
	raw        string
}

func own(e Event) unit {
	ptr := func(b []byte) *string {
		if b == nil {
			return nil
		}
		s := string(b)
		return &s
	}
	return unit{ptr(e.Name), ptr(e.Data), string(e.Raw)}
}

func (u unit) String() string {
	show := func(s *string) string {
		if s == nil {
			return "-"
		}
		return fmt.Sprintf("%q", *s)
	}
	return show(u.name) + " " + show(u.data)
}

// scan pushes the pieces through one scanner, overwriting each piece as soon as the contract allows it.
func scan(s *Scanner, pieces ...[]byte) []unit {
	var units []unit
	for _, p := range pieces {
		mine := bytes.Clone(p)
		s.Push(mine)
		var held []Event
		for e, ok := s.Next(); ok; e, ok = s.Next() {
			held = append(held, e)
		}
		for _, e := range held { // All events of one Push are valid together.
			units = append(units, own(e))
		}
		for i := range mine {
			mine[i] = '!'
		}
	}
	return units
}

func show(units []unit) string {
	var lines []string
	for _, u := range units {
		lines = append(lines, u.String())
	}
	return strings.Join(lines, "\n")
}

func TestScan(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []string // "name data" for each unit, "-" for nil
		rest     int
	}{
		{"data only", "data: x\n\n", []string{`- "x"`}, 0},
		{"name and data", "event: ping\ndata: {}\n\n", []string{`"ping" "{}"`}, 0},
		{"data before name", "data: {}\nevent: ping\n\n", []string{`"ping" "{}"`}, 0},
		{"last name wins", "event: a\nevent: b\ndata: x\n\n", []string{`"b" "x"`}, 0},
		{"no space behind the colon", "event:a\ndata:{}\n\n", []string{`"a" "{}"`}, 0},
		{"second space is content", "data:  x\n\n", []string{`- " x"`}, 0},
		{"tab is content", "data:\tx\n\n", []string{`- "\tx"`}, 0},
		{"colons in the value", "data: a: b\n\n", []string{`- "a: b"`}, 0},
		{"field without colon", "data\n\n", []string{`- ""`}, 0},
		{"empty data", "data:\n\n", []string{`- ""`}, 0},
		{"only a space", "data: \n\n", []string{`- ""`}, 0},
		{"name without data", "event: x\n\n", []string{`"x" -`}, 0},
		{"empty name", "event:\ndata:\n\n", []string{`"" ""`}, 0},
		{"several data lines", "data: a\ndata: b\n\n", []string{`- "a\nb"`}, 0},
		{"empty data lines", "data\ndata\ndata:\n\n", []string{`- "\n\n"`}, 0},
		{"several data lines around others", "data: a\nid: 1\ndata: b\n: c\nevent: e\ndata:\n\n", []string{`"e" "a\nb\n"`}, 0},
		{"two joined events in one push", "data: a\ndata: b\n\ndata: c\ndata: d\n\n", []string{`- "a\nb"`, `- "c\nd"`}, 0},
		{"field names are exact", "dat: a\ndatax: b\nDATA: c\n data: d\nevents: e\n\n", []string{`- -`}, 0},
		{"id and retry say nothing", "id: 1\nretry: 5\n\n", []string{`- -`}, 0},
		{"comment between events", ": hb\ndata: x\n\n: hb\n", []string{`- -`, `- "x"`, `- -`}, 0},
		{"comment inside an event", "data: a\n: hb\ndata: b\n\n", []string{`- "a\nb"`}, 0},
		{"bare colon", ":\ndata: x\n\n", []string{`- -`, `- "x"`}, 0},
		{"comment with blank line", ": hb\n\n", []string{`- -`, `- -`}, 0},
		{"blank lines", "\n\n\ndata: x\n\n\n", []string{`- -`, `- -`, `- -`, `- "x"`, `- -`}, 0},
		{"carriage returns", "data: a\r\rdata: b\rdata: c\r\r", []string{`- "a"`, `- "b\nc"`}, 0},
		{"crlf", "data: a\r\n\r\ndata: b\r\n\r\n", []string{`- "a"`, `- "b"`}, 0},
		{"line ends mixed", "data: a\r\ndata: b\ndata: c\r\n\ndata: d\n\r", []string{`- "a\nb\nc"`}, 9},
		{"crlf data lines", "data: a\r\ndata: b\r\n\r\n", []string{`- "a\nb"`}, 0},
		{"bom", "\ufeffdata: x\n\ndata: y\n\n", []string{`- "x"`, `- "y"`}, 0},
		{"second bom is no bom", "\ufeff\ufeffdata: x\n\n", []string{`- -`}, 0},
		{"bom later is no bom", "data: x\n\n\ufeffdata: y\ndata: z\ndata: w\n\n", []string{`- "x"`, `- "z\nw"`}, 0},
		{"bom before several data lines", "\ufeffdata: x\ndata: y\n\n", []string{`- "x\ny"`}, 0},
		{"bom before a comment", "\ufeff: x\ndata: y\n\n", []string{`- -`, `- "y"`}, 0},
		{"half a bom", "\xef\xbb", nil, 2},
		{"unicode separators are text", "data: a\u2028b\u2029c\u0085d\x0b\x0c\x1c\n\n", []string{"- " + fmt.Sprintf("%q", "a\u2028b\u2029c\u0085d\x0b\x0c\x1c")}, 0},
		{"nul is text", "data: a\x00b\n\n", []string{`- "a\x00b"`}, 0},
		{"unfinished event", "data: a\n\ndata: b\n", []string{`- "a"`}, 8},
		{"unfinished line", "data: a\n\ndata: b", []string{`- "a"`}, 7},
		{"nothing", "", nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s Scanner
			units := scan(&s, []byte(c.in))
			if got, want := show(units), strings.Join(c.want, "\n"); got != want {
				t.Errorf("units:\n%s\nwant:\n%s", got, want)
			}
			if s.Unfinished() != c.rest || s.Err() != nil {
				t.Errorf("unfinished %d, err %v, want %d bytes", s.Unfinished(), s.Err(), c.rest)
			}
			everySplit(t, []byte(c.in), 1)
		})
	}
}

// A heartbeat must not wait for the event behind it, nor an event for the byte behind it.
func TestUnitsLeaveAtOnce(t *testing.T) {
	for _, c := range []struct {
		name   string
		pushes []string
		want   []int // units handed out after each push
	}{
		{"comment", []string{": hb\n", "data: x\n\n"}, []int{1, 1}},
		{"blank line", []string{"\n", "data: x\n\n"}, []int{1, 1}},
		{"event and name in separate reads are one event", []string{"event: a\n", "data: x\n\n"}, []int{0, 1}},
		{"crlf waits for its second half", []string{"data: x\r\n\r", "\n"}, []int{0, 1}},
		{"lone crs go at once", []string{"data: x\r\r", "data: y\r\r", ":hb\r"}, []int{1, 1, 1}},
		{"a cr among lfs may be half a crlf", []string{"data: x\n\n", ":hb\r", "\n"}, []int{1, 0, 1}},
		{"the first line end of a stream may be half a crlf", []string{":hb\r", "\n", ":hb\r", "\n"}, []int{0, 1, 0, 1}},
		{"lone crs until an lf shows that it was crlf", []string{"data: x\r\r", "\ndata: y\r\n\r", "\n"}, []int{1, 0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s Scanner
			var in, out string
			for i, p := range c.pushes {
				units := scan(&s, []byte(p))
				if len(units) != c.want[i] {
					t.Errorf("push %d %q: %d units, want %d", i, p, len(units), c.want[i])
				}
				in += p
				for _, u := range units {
					out += u.raw
				}
			}
			if in != out {
				t.Errorf("raw bytes %q, want %q", out, in)
			}
		})
	}
}

func TestRest(t *testing.T) {
	for _, c := range []struct{ name, in, want, reframed string }{
		{"no blank line", "data: x\n", `- "x"`, "data: x\n\n"},
		{"no line end", "event: a\ndata: x", `"a" "x"`, "event: a\ndata: x\n\n"},
		{"json cut in half", `data: {"a":`, `- "{\"a\":"`, "data: {\"a\":\n\n"},
		{"field name cut", "event: a\nda", `"a" -`, "event: a\nda\n\n"},
		{"several data lines", "data: a\ndata: b", `- "a\nb"`, "data: a\ndata: b\n\n"},
		{"crlf without its blank line", "data: x\r\n", `- "x"`, "data: x\r\n\n"},
		{"crlf cut inside the blank line", "data: x\r\n\r", `- "x"`, "data: x\r\n\r\n"},
		{"crlf cut inside the line end", "data: x\r", `- "x"`, "data: x\r\n\n"},
		{"comment", ": hb", `- -`, ": hb\n"},
		{"comment inside", "data: x\n: hb", `- "x"`, "data: x\n: hb\n\n"},
		{"bare json error", "{\n \"error\": {}\n}", `- -`, "{\n \"error\": {}\n}\n\n"},
		{"bom", "\ufeffdata: x", `- "x"`, "\ufeffdata: x\n\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s Scanner
			if units := scan(&s, []byte(c.in)); len(units) != 0 {
				t.Fatalf("whole units %v", units)
			}
			e, ok := s.Rest()
			if got := own(e); !ok || got.String() != c.want || got.raw != c.in {
				t.Errorf("rest %v %v %q, want %v", ok, got, got.raw, c.want)
			}
			reframed := e.Reframe(nil)
			if string(reframed) != c.reframed {
				t.Errorf("reframed %q, want %q", reframed, c.reframed)
			}
			if again, ok := s.Rest(); !ok || own(again).String() != own(e).String() || s.Unfinished() != len(c.in) {
				t.Errorf("Rest consumed something")
			}
			var whole Scanner
			units := scan(&whole, reframed, []byte("data: after\n\n"))
			if len(units) != 2 || units[0].String() != c.want || whole.Unfinished() != 0 {
				t.Errorf("reframed does not scan as the same unit and a clean boundary: %v", units)
			}
		})
	}
	if _, ok := new(Scanner).Rest(); ok {
		t.Error("an empty scanner has a rest")
	}
}

func TestStrayLines(t *testing.T) {
	for in, want := range map[string]bool{
		"error: {\"message\":\"x\"}\n\n":        true,
		"{\"error\":{\n  \"code\": 503\n}}\n\n": true,
		": hb\n":                                false,
		"id: 1\nretry: 2\n: c\n\n":              false,
		"\r\n":                                  false,
		"\ufeff: hb\n":                          false,
		"data: x\nerror: y\n\n":                 false, // data speaks for itself
	} {
		var s Scanner
		s.Push([]byte(in))
		e, ok := s.Next()
		if got := e.Stray() != nil; !ok || got != want {
			t.Errorf("%q: stray %v, want %v", in, got, want)
		}
	}
}

func TestWholeUnitsReframeUnchanged(t *testing.T) {
	for _, in := range []string{"data: x\n\n", "data: x\r\n\r\n", "data: x\r\r", ": hb\n", "\n", "\r\n", "event: a\n\n"} {
		if got := (Event{Raw: []byte(in)}).Reframe(nil); string(got) != in {
			t.Errorf("%q became %q", in, got)
		}
	}
}

func TestTooLong(t *testing.T) {
	for _, c := range []struct {
		name, in string
		units    int
	}{
		{"endless line", strings.Repeat("a", 1000), 0},
		{"behind a good event", "data: x\n\n" + strings.Repeat("a", 1000), 1},
		{"many short lines", strings.Repeat("data: x\n", 100), 0},
		{"whole but too long", "data: x\n\ndata: " + strings.Repeat("x", 100) + "\n\ndata: y\n\n", 1},
		{"endless comment", ":" + strings.Repeat("x", 100) + "\n", 0},
	} {
		for _, size := range []int{1, 7, 64, len(c.in)} {
			t.Run(fmt.Sprintf("%s in pieces of %d", c.name, size), func(t *testing.T) {
				s := Scanner{Limit: 100}
				units := scan(&s, chop([]byte(c.in), size)...)
				if len(units) != c.units || !errors.Is(s.Err(), ErrTooLong) {
					t.Fatalf("%d units, err %v", len(units), s.Err())
				}
				if s.Unfinished() <= 100 || cap(s.buf) != 0 || s.in != nil {
					t.Errorf("unfinished %d, holding %d bytes", s.Unfinished(), cap(s.buf))
				}
				if got := scan(&s, []byte("data: z\n\n")); got != nil || s.Err() == nil {
					t.Errorf("the error is not final: %v", got)
				}
				s.Reset()
				if got := scan(&s, []byte("data: z\n\n")); len(got) != 1 || s.Limit != 100 {
					t.Errorf("not usable after Reset: %v", got)
				}
			})
		}
	}
	exact := Scanner{Limit: 9}
	if got := scan(&exact, []byte("data: x\n\n")); len(got) != 1 {
		t.Errorf("a unit of exactly the limit is refused: %v", exact.Err())
	}
}

func chop(b []byte, size int) (pieces [][]byte) {
	for ; len(b) > size; b = b[size:] {
		pieces = append(pieces, b[:size])
	}
	return append(pieces, b)
}
