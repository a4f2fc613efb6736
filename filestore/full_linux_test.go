package filestore

import (
	"os"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// On a full disk appends are refused as unavailable and counted; when there is
// room again, the log goes on without a hole. /dev/full is a disk that is full.
func TestAFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no /dev/full here: %v", err)
	}
	s := open(t, Config{Dir: t.TempDir()})
	f, _ := claim(t, s, "run", me)
	must(t, s.Append(t.Context(), f, 0, []byte("before ")))
	h := s.turns[key("run")]
	h.mu.Lock()
	disk := h.file
	h.file = full
	h.mu.Unlock()
	for range 3 {
		err := s.Append(t.Context(), f, 7, []byte("after"))
		want(t, err, checkpoint.ErrUnavailable)
		if !strings.Contains(err.Error(), "no space left") {
			t.Errorf("%v", err)
		}
	}
	if st := s.Stats(); st.Full != 3 || st.Failures != 3 || st.Bytes != 7 {
		t.Errorf("%+v", st)
	}
	h.mu.Lock()
	h.file = disk
	h.mu.Unlock()
	must(t, full.Close())
	must(t, s.Append(t.Context(), f, 7, []byte("after")))
	r, err := s.Get(t.Context(), key("run"))
	must(t, err)
	if string(r.Log) != "before after" {
		t.Errorf("log %q", r.Log)
	}
}

// A directory that cannot be written to is a store that is unavailable.
func TestRecordsThatCannotBeWritten(t *testing.T) {
	s := open(t, Config{Dir: t.TempDir()})
	f, _ := claim(t, s, "run", me)
	must(t, s.Append(t.Context(), f, 0, []byte("abc")))
	// A directory in the way of the temporary file fails for root, too.
	must(t, os.Mkdir(s.path(key("run"))+".rec.tmp", 0o700))
	want(t, s.Mark(t.Context(), f, checkpoint.State{Phase: checkpoint.Broken}), checkpoint.ErrUnavailable)
	_, _, err := s.Claim(t.Context(), key("run"), "me", checkpoint.Record{})
	want(t, err, checkpoint.ErrUnavailable)
	r, err := s.Get(t.Context(), key("run"))
	must(t, err)
	if r.State.Phase != checkpoint.Live || s.Stats().Failures != 2 {
		t.Errorf("what failed has happened: %+v", r)
	}
	must(t, s.Append(t.Context(), f, 3, []byte("d")))
}
