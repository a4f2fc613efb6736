package proxy

import (
	"io"
	"runtime"
	"testing"
)

// pages is an endless body.
type pages struct{}

func (pages) Read(p []byte) (int, error) { return len(p), nil }

// A body of 50 MB is read into its place: all buffers together, the first and smaller ones
// among them, are hardly more than it, so that hardly any of it is copied twice.
func TestALargeBodyIsReadInPlace(t *testing.T) {
	const size = 50 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := slurp(io.LimitReader(pages{}, size), size, 64<<20)
	runtime.ReadMemStats(&after)
	if err != nil || len(got) != size {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > size+size/4 && !raced {
		t.Errorf("%d bytes were allocated for %d", took, size)
	}
}
