package filestore

import (
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// held is one turn.
type held struct {
	path string // of its files, without the suffix

	mu    sync.Mutex
	rec   checkpoint.Record // without its log
	fence uint64
	asks  []checkpoint.AskKey
	size  int64 // of the log
	end   int64 // where the next frame goes in its file
	file  *os.File
	dirty bool // appended to since the last sync
	fresh bool // being claimed for the first time: there are no files
	gone  bool // dropped
	key   checkpoint.TurnKey
	err   error // its files cannot be understood
}

func (s *Store) path(key checkpoint.TurnKey) string {
	name := key.String()
	return filepath.Join(s.c.Dir, "turns", name[:2], name)
}

func (h *held) expired(now time.Time, c *Config) bool {
	ttl := c.TTL
	if h.rec.State.Phase == checkpoint.Finished {
		ttl = c.FinishedTTL
	}
	return now.Sub(h.rec.Updated) >= ttl
}

// touched is when the turn was last written, once it is at now.
func (h *held) touched(now time.Time) time.Time {
	if h.rec.State.Phase == checkpoint.Finished {
		return h.rec.Updated
	}
	return now
}

// save writes the record file as it would be, and only then is it so.
func (h *held) save(fence uint64, asks []checkpoint.AskKey, r checkpoint.Record) error {
	if err := h.sync(); err != nil {
		return err
	}
	if err := replace(h.path+".rec", encode(fence, asks, r)); err != nil {
		return err
	}
	h.fence, h.asks, h.rec = fence, asks, r
	return nil
}

// open opens the log file.
func (h *held) open() (err error) {
	if h.file == nil {
		h.file, err = os.OpenFile(h.path+".log", os.O_CREATE|os.O_RDWR, 0o600)
	}
	return err
}

// write appends a frame. After a failure the next one takes its place.
func (h *held) write(p []byte) error {
	if err := h.open(); err != nil {
		return err
	}
	b := frame(p)
	if _, err := h.file.WriteAt(b, h.end); err != nil {
		_ = h.file.Truncate(h.end)
		return err
	}
	h.end += int64(len(b))
	h.size += int64(len(p))
	h.dirty = true
	return nil
}

// read returns the log.
func (h *held) read() ([]byte, error) {
	if h.size == 0 {
		return nil, nil
	}
	if err := h.open(); err != nil {
		return nil, err
	}
	if h.rec.Owner == "" {
		defer h.shut()
	}
	log, _, err := frames(io.NewSectionReader(h.file, 0, h.end))
	if err == nil && int64(len(log)) != h.size {
		err = checkpoint.ErrCorrupt
	}
	return log, err
}

func (h *held) sync() error {
	if !h.dirty {
		return nil
	}
	if err := h.file.Sync(); err != nil {
		return err
	}
	h.dirty = false
	return nil
}

func (h *held) shut() {
	if h.file != nil {
		_ = h.file.Close()
		h.file = nil
	}
	h.dirty = false
}
