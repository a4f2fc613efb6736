package filestore

import (
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// load reads the directory: what an earlier process left. Leftovers of an
// interrupted write go, torn logs are cut, foreign files stay.
func (s *Store) load() error {
	now := s.now()
	var logs []string
	err := filepath.WalkDir(filepath.Join(s.c.Dir, "turns"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, suffix, _ := strings.Cut(d.Name(), ".")
		raw, err := hex.DecodeString(name)
		if err != nil || len(raw) != len(checkpoint.TurnKey{}) {
			return nil
		}
		switch suffix {
		case "rec.tmp":
			return os.Remove(path)
		case "log":
			logs = append(logs, path)
		case "rec":
			h := &held{key: checkpoint.TurnKey(raw), path: strings.TrimSuffix(path, ".rec")}
			if err := s.read(h); err != nil {
				return err
			}
			if h.expired(now, &s.c) {
				s.discard(h)
				return nil
			}
			s.turns[h.key] = h
			s.ids.last = max(s.ids.last, h.fence)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, path := range logs {
		if raw, _ := hex.DecodeString(strings.TrimSuffix(filepath.Base(path), ".log")); s.turns[checkpoint.TurnKey(raw)] == nil {
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
		}
	}
	s.loadOffers()
	return nil
}

// read reads one turn's files. That they make no sense is kept in h, for whoever
// asks; it expires like any other.
func (s *Store) read(h *held) error {
	b, err := os.ReadFile(h.path + ".rec")
	if err != nil {
		return err
	}
	info, err := os.Stat(h.path + ".rec")
	if err != nil {
		return err
	}
	fence, asks, r, err := decode(b)
	if err != nil {
		h.err = err
		h.rec.Updated = info.ModTime()
		return nil
	}
	h.fence, h.asks, h.rec = fence, asks, *r
	f, err := os.OpenFile(h.path+".log", os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	log, end, err := frames(f)
	if err != nil {
		return err
	}
	if info, err = f.Stat(); err != nil {
		return err
	}
	if at := info.ModTime(); at.After(h.rec.Updated) {
		h.rec.Updated = at.UTC()
	}
	if info.Size() > end {
		s.cut++
		if err := f.Truncate(end); err != nil {
			return err
		}
	}
	h.size, h.end = int64(len(log)), end
	s.total.Add(h.size)
	return nil
}

// loadOffers brings the offers back, in the order in which the turns began.
func (s *Store) loadOffers() {
	offered := make([]*held, 0, len(s.turns))
	for _, h := range s.turns {
		if len(h.asks) > 0 {
			offered = append(offered, h)
		}
	}
	slices.SortFunc(offered, func(a, b *held) int { return a.rec.Created.Compare(b.rec.Created) })
	for _, h := range offered {
		for _, a := range h.asks {
			s.ids.offers[a] = append(s.ids.offers[a], h.key)
		}
	}
}

// keySize is that of all keys of files, in bytes.
const keySize = len(checkpoint.MemoKey{})

// eachKeyed reads every file of dir that is named by a key. What an interrupted write
// left of one is removed; foreign files stay.
func eachKeyed(dir string, do func(key [keySize]byte, path string, b []byte) error) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		name, half := strings.CutSuffix(f.Name(), ".tmp")
		raw, err := hex.DecodeString(name)
		if err != nil || len(raw) != keySize {
			continue
		}
		path := filepath.Join(dir, f.Name())
		if half {
			err = os.Remove(path)
		} else {
			var b []byte
			if b, err = os.ReadFile(path); err == nil {
				err = do([keySize]byte(raw), path, b)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
