package filestore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// A memo file:
//
//	version(1) expiry in µs(8) value crc32c(4)
//
// all big endian. What the directory holds is known in memory, so that to ask for
// what is not there costs no look at the disk.
const (
	memoVersion = 1
	memoHead    = 9
	memoFrame   = memoHead + 4
)

type memos struct {
	mu    sync.Mutex
	all   map[checkpoint.MemoKey]memoFile
	bytes int64
}

type memoFile struct {
	until time.Time
	size  int64
}

func (s *Store) memoPath(key checkpoint.MemoKey) string {
	return filepath.Join(s.c.Dir, "memos", key.String())
}

// Remember implements [checkpoint.Memos].
func (s *Store) Remember(ctx context.Context, ttl time.Duration, list ...checkpoint.Memo) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, err)
	}
	for _, m := range list {
		if n := int64(len(m.Value) + memoFrame); n > s.c.MaxMemos {
			return fmt.Errorf("%w: memo of %d bytes, at most %d of them", checkpoint.ErrTooLarge, n, s.c.MaxMemos)
		}
	}
	now := s.now()
	until := now.Add(ttl)
	s.memos.mu.Lock()
	defer s.memos.mu.Unlock()
	for _, m := range list {
		b := binary.BigEndian.AppendUint64([]byte{memoVersion}, uint64(until.UnixMicro()))
		b = append(b, m.Value...)
		b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
		if err := replace(s.memoPath(m.Key), b); err != nil {
			return s.failed(err)
		}
		s.memos.note(m.Key, memoFile{until, int64(len(b))})
	}
	s.pruneMemos(now)
	return nil
}

// Recall implements [checkpoint.Memos].
func (s *Store) Recall(ctx context.Context, keys ...checkpoint.MemoKey) ([][]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", checkpoint.ErrUnavailable, err)
	}
	now := s.now()
	out := make([][]byte, len(keys))
	s.memos.mu.Lock()
	defer s.memos.mu.Unlock()
	for i, key := range keys {
		f, ok := s.memos.all[key]
		if !ok || !now.Before(f.until) {
			continue
		}
		b, err := os.ReadFile(s.memoPath(key))
		if err != nil {
			return nil, s.failed(err)
		}
		_, value, err := decodeMemo(b)
		if err != nil {
			return nil, err
		}
		out[i] = value
	}
	return out, nil
}

func decodeMemo(b []byte) (until time.Time, value []byte, err error) {
	n := len(b) - 4
	switch {
	case len(b) > 0 && b[0] > memoVersion:
		return until, nil, fmt.Errorf("%w: memo file %d, this is %d", checkpoint.ErrVersion, b[0], memoVersion)
	case n < memoHead || b[0] == 0 || binary.BigEndian.Uint32(b[n:]) != crc32.Checksum(b[:n], castagnoli):
		return until, nil, fmt.Errorf("%w: memo file of %d bytes", checkpoint.ErrCorrupt, len(b))
	}
	return time.UnixMicro(int64(binary.BigEndian.Uint64(b[1:]))).UTC(), b[memoHead:n], nil
}

func (m *memos) note(key checkpoint.MemoKey, f memoFile) {
	m.bytes += f.size - m.all[key].size
	m.all[key] = f
}

// pruneMemos forgets what has expired and, beyond the bound, what would expire
// first. mu is held.
func (s *Store) pruneMemos(now time.Time) {
	m := &s.memos
	order := make([]checkpoint.MemoKey, 0, len(m.all))
	for key, f := range m.all {
		if !now.Before(f.until) {
			s.dropMemo(key)
		} else if m.bytes > s.c.MaxMemos {
			order = append(order, key)
		}
	}
	if m.bytes <= s.c.MaxMemos {
		return
	}
	slices.SortFunc(order, func(a, b checkpoint.MemoKey) int { return m.all[a].until.Compare(m.all[b].until) })
	for _, key := range order {
		if m.bytes <= s.c.MaxMemos {
			return
		}
		s.dropMemo(key)
	}
}

func (s *Store) dropMemo(key checkpoint.MemoKey) {
	if err := os.Remove(s.memoPath(key)); err != nil && !errors.Is(err, os.ErrNotExist) {
		_ = s.failed(err)
		return // it is tried again
	}
	s.memos.bytes -= s.memos.all[key].size
	delete(s.memos.all, key)
}

// loadMemos reads what an earlier process remembered. Leftovers of an interrupted
// write and what makes no sense go; a newer release's and foreign files stay.
func (s *Store) loadMemos() error {
	s.memos.all = map[checkpoint.MemoKey]memoFile{}
	err := eachKeyed(filepath.Join(s.c.Dir, "memos"), func(key [keySize]byte, path string, b []byte) error {
		switch until, _, err := decodeMemo(b); {
		case errors.Is(err, checkpoint.ErrVersion):
		case err != nil:
			return os.Remove(path)
		default:
			s.memos.note(key, memoFile{until, int64(len(b))})
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.pruneMemos(s.now())
	return nil
}
