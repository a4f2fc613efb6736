package checkpoint

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// offer is one turn that may be adopted, in the order of offering.
type offer struct {
	key  TurnKey
	made time.Time
}

// Follow implements [Follower].
func (m *Memory) Follow(ctx context.Context, key TurnKey, offset int64) (*Record, bool, error) {
	now, unlock, err := m.enter(ctx)
	if err != nil {
		return nil, false, err
	}
	defer unlock()
	h := m.find(key, now)
	if h == nil {
		return nil, false, ErrNotFound
	}
	if offset < 0 || offset > int64(len(h.Log)) {
		return nil, false, fmt.Errorf("%w: follow from %d of %d", ErrGap, offset, len(h.Log))
	}
	r := h.Record
	r.Log = r.Log[offset:]
	return r.Clone(), h.Owner != "" && m.alive(h.Owner), nil
}

// Offer implements [Index].
func (m *Memory) Offer(ctx context.Context, ask AskKey, f Fence) error {
	now, unlock, err := m.enter(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	h := m.find(f.Key, now)
	if h == nil || h.fence != f.N || slices.ContainsFunc(m.offers[ask], func(o offer) bool { return o.key == f.Key }) {
		return nil
	}
	list := append(m.offers[ask], offer{f.Key, now})
	m.offers[ask] = list[max(0, len(list)-MaxOffers):]
	return nil
}

// Adopt implements [Index].
func (m *Memory) Adopt(ctx context.Context, ask AskKey, owner Owner, within time.Duration) (Fence, *Record, error) {
	now, unlock, err := m.enter(ctx)
	if err != nil {
		return Fence{}, nil, err
	}
	defer unlock()
	none := ErrNotFound
	for i, o := range m.offers[ask] {
		h := m.find(o.key, now)
		if h == nil || now.Sub(h.Updated) > within {
			continue
		}
		if !Orphan(&h.Record, owner, m.alive(h.Owner)) {
			if h.State.Phase == Live && h.Owner != owner {
				none = ErrOwned
			}
			continue
		}
		m.retract(ask, i)
		before := h.Clone()
		m.last = NextFence(m.last, now)
		h.fence, h.Owner, h.Updated = m.last, owner, now
		return Fence{Key: o.key, N: h.fence}, before, nil
	}
	return Fence{}, nil, none
}

// Secret implements [Secrets].
func (m *Memory) Secret(ctx context.Context, name string, fresh []byte) ([]byte, error) {
	_, unlock, err := m.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if _, ok := m.secrets[name]; !ok {
		if len(fresh) == 0 {
			return nil, ErrNotFound
		}
		m.secrets[name] = slices.Clone(fresh)
	}
	return slices.Clone(m.secrets[name]), nil
}

func (m *Memory) retract(ask AskKey, i int) {
	if m.offers[ask] = slices.Delete(m.offers[ask], i, i+1); len(m.offers[ask]) == 0 {
		delete(m.offers, ask)
	}
}

// sweepOffers drops the offers of turns that are gone. Its order reaches nobody.
func (m *Memory) sweepOffers() {
	for ask, list := range m.offers {
		list = slices.DeleteFunc(list, func(o offer) bool { return m.turns[o.key] == nil })
		if m.offers[ask] = list; len(list) == 0 {
			delete(m.offers, ask)
		}
	}
}
