package proxy

import (
	"bufio"
	"bytes"
	"io"
	"net/http/httputil"
	"testing"
)

// What leaves beside fasthttp's buffer is framed as what leaves through it.
func TestChunksAreFramed(t *testing.T) {
	var wire, want []byte
	for _, n := range []int{1, 0, 15, 16, 4096, 70_000} {
		p := bytes.Repeat([]byte{'x'}, n)
		want = append(want, p...)
		wire = appendChunk(wire, p)
	}
	wire = append(wire, "0\r\n\r\n"...)
	got, err := io.ReadAll(httputil.NewChunkedReader(bufio.NewReader(bytes.NewReader(wire))))
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes of %d, %v", len(got), len(want), err)
	}
}
