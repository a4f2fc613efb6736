package upstream

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"testing"
)

// loop is a connection that answers with an endless chunked body, per read as many bytes as one segment of a busy stream holds.
type loop struct {
	script
	head  []byte
	chunk []byte
}

func (l *loop) Read(p []byte) (int, error) {
	if len(l.head) > 0 {
		n := copy(p, l.head)
		l.head = l.head[n:]
		return n, nil
	}
	return copy(p, l.chunk), nil
}

const oneEvent = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"finish_reason\":null}]}\n\n"

func newLoop(events int) *loop {
	var b bytes.Buffer
	for range events {
		fmt.Fprintf(&b, "%x\r\n%s\r\n", len(oneEvent), oneEvent)
	}
	return &loop{head: []byte("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"), chunk: b.Bytes()}
}

func looped(t testing.TB, events int) *Response {
	l := newLoop(events)
	cl := New(Config{Proxy: NoProxy})
	t.Cleanup(cl.Close)
	c := &conn{nc: l, raw: l, host: &host{client: cl, closed: true}}
	res, e := c.open(t.Context(), &Target{URL: mustURL("http://provider.test")}, post("{}"))
	if e != nil {
		t.Fatal(e)
	}
	t.Cleanup(func() { res.Close() })
	return res
}

// TestNextDoesNotAllocate: streaming costs no garbage per read, and a wake costs none either.
func TestNextDoesNotAllocate(t *testing.T) {
	res := looped(t, 20)
	n := testing.AllocsPerRun(1000, func() {
		if p, err := res.Next(); len(p) == 0 || err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations per Next", n)
	}
	n = testing.AllocsPerRun(1000, func() {
		res.Wake()
		if _, err := res.Next(); err != ErrWoken {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations per wake", n)
	}
}

// BenchmarkBody reads chunked bodies with one and with many events per segment, ours and the standard client's.
func BenchmarkBody(b *testing.B) {
	for _, events := range []int{1, 20} {
		b.Run(fmt.Sprintf("upstream/%d events a read", events), func(b *testing.B) {
			res := looped(b, events)
			b.ReportAllocs()
			b.SetBytes(int64(len(oneEvent) * events))
			for b.Loop() {
				if p, err := res.Next(); err != nil || len(p) != len(oneEvent)*events {
					b.Fatal(len(p), err)
				}
			}
		})
		b.Run(fmt.Sprintf("net-http/%d events a read", events), func(b *testing.B) {
			res, err := http.ReadResponse(bufio.NewReader(newLoop(events)), nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			buf := make([]byte, 4<<10)
			b.SetBytes(int64(len(oneEvent) * events))
			for b.Loop() {
				for got := 0; got < len(oneEvent)*events; {
					n, err := res.Body.Read(buf)
					if err != nil {
						b.Fatal(err)
					}
					got += n
				}
			}
		})
	}
}
