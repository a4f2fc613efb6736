package checkpoint

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// memos is what a [Memory] remembers, and the order in which it forgets.
type memos struct {
	all   map[MemoKey]kept
	order []keptAt // oldest first; one that was replaced since is stale
	bytes int64
	last  uint64
}

type kept struct {
	value []byte
	until time.Time
	n     uint64 // of its place in the order
}

type keptAt struct {
	key MemoKey
	n   uint64
}

// memoCost is what a memo takes besides its value, about.
const memoCost = 160

func (k *kept) cost() int64 { return int64(len(k.value)) + memoCost }

// Remember implements [Memos].
func (m *Memory) Remember(ctx context.Context, ttl time.Duration, list ...Memo) error {
	now, unlock, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for _, memo := range list {
		if n := int64(len(memo.Value)) + memoCost; n > m.c.MaxMemos {
			return fmt.Errorf("%w: memo of %d bytes, at most %d of them", ErrTooLarge, n, m.c.MaxMemos)
		}
	}
	for _, memo := range list {
		m.memos.keep(memo, now.Add(ttl))
	}
	m.memos.prune(now, m.c.MaxMemos)
	return nil
}

// Recall implements [Memos].
func (m *Memory) Recall(ctx context.Context, keys ...MemoKey) ([][]byte, error) {
	now, unlock, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	out := make([][]byte, len(keys))
	for i, key := range keys {
		if k, ok := m.memos.all[key]; ok && now.Before(k.until) {
			out[i] = slices.Clone(k.value)
		}
	}
	return out, nil
}

func (ms *memos) keep(memo Memo, until time.Time) {
	if ms.all == nil {
		ms.all = map[MemoKey]kept{}
	}
	ms.forget(memo.Key)
	ms.last++
	k := kept{slices.Clone(memo.Value), until, ms.last}
	ms.all[memo.Key] = k
	ms.bytes += k.cost()
	ms.order = append(ms.order, keptAt{memo.Key, k.n})
}

func (ms *memos) forget(key MemoKey) {
	if k, ok := ms.all[key]; ok {
		ms.bytes -= k.cost()
		delete(ms.all, key)
	}
}

// prune forgets the oldest: what was replaced or has expired, and whatever is too
// much.
func (ms *memos) prune(now time.Time, most int64) {
	for len(ms.order) > 0 {
		at := ms.order[0]
		if k, ok := ms.all[at.key]; ok && k.n == at.n {
			if now.Before(k.until) && ms.bytes <= most {
				return
			}
			ms.forget(at.key)
		}
		ms.order = ms.order[1:]
	}
}
