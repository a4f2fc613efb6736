package sse

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestAppend(t *testing.T) {
	for _, c := range []struct {
		name, event string
		data        []byte
		want        string
	}{
		{"data only", "", []byte(`{}`), "data: {}\n\n"},
		{"named", "ping", []byte(`{"type":"ping"}`), "event: ping\ndata: {\"type\":\"ping\"}\n\n"},
		{"name without data", "ping", nil, "event: ping\n\n"},
		{"empty data", "", []byte{}, "data: \n\n"},
		{"several lines", "", []byte("a\nb\n"), "data: a\ndata: b\ndata: \n\n"},
		{"cr and crlf are line ends too", "", []byte("a\r\nb\rc\r\r\n\rd"), "data: a\ndata: b\ndata: c\ndata: \ndata: \ndata: d\n\n"},
		{"leading space survives", "", []byte(" a"), "data:  a\n\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Append([]byte("head|"), c.event, c.data)
			if string(got) != "head|"+c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// The heartbeat form of FIELD-REPORTS B5: a blank line behind it made a decoder dispatch an empty event.
func TestCommentIsOneLine(t *testing.T) {
	if got := AppendComment(nil, "hb"); string(got) != ":hb\n" {
		t.Errorf("got %q", got)
	}
}

func TestLineBreaksCannotBeSmuggledIn(t *testing.T) {
	for name, f := range map[string]func(){
		"event name": func() { Append(nil, "a\ndata: b", nil) },
		"comment":    func() { AppendComment(nil, "a\rdata: b") },
	} {
		func() {
			defer func() {
				if r := fmt.Sprint(recover()); !strings.HasPrefix(r, "BUG:") {
					t.Errorf("%s: recovered %s", name, r)
				}
			}()
			f()
		}()
	}
}

func FuzzAppendScansBack(f *testing.F) {
	f.Add("a", []byte("x\ny"), true)
	f.Add("", []byte("\r\r\n\n "), true)
	f.Add("é", []byte(nil), false)
	f.Fuzz(func(t *testing.T, name string, data []byte, has bool) {
		if strings.ContainsAny(name, "\r\n") {
			return
		}
		if !has {
			data = nil
		} else if data == nil {
			data = []byte{}
		}
		var s Scanner
		s.Push(Append(nil, name, data))
		e, ok := s.Next()
		if name == "" && data == nil { // nothing to say is a blank line
			if !ok || !e.Comment() {
				t.Fatalf("%v %q", ok, e.Raw)
			}
			return
		}
		want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data))
		if !ok || string(e.Name) != name || string(e.Data) != want || (e.Data == nil) != (data == nil) || s.Unfinished() != 0 {
			t.Fatalf("Append(%q, %q) scans as %q %q, %d bytes over", name, data, e.Name, e.Data, s.Unfinished())
		}
		if !bytes.Equal(e.Reframe(nil), e.Raw) {
			t.Fatalf("Reframe changes the whole unit %q", e.Raw)
		}
	})
}
