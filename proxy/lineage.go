package proxy

import (
	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/dialect"
)

// maxLineage bounds how many turns in a row are expanded for one request.
const maxLineage = 64

func turnKey(who checkpoint.Scope, d dialect.Dialect, id string) checkpoint.MemoKey {
	return checkpoint.MemoOf(who, memoTurn, d.Name(), id)
}

func itemKey(who checkpoint.Scope, d dialect.Dialect, id string) checkpoint.MemoKey {
	return checkpoint.MemoOf(who, memoItem, d.Name(), id)
}

// bequest is what is kept of a spliced turn.
func bequest(who checkpoint.Scope, d dialect.Dialect, left dialect.Legacy) []checkpoint.Memo {
	memos := []checkpoint.Memo{{Key: turnKey(who, d, left.ID), Value: left.Turn}}
	for _, h := range left.Items {
		memos = append(memos, checkpoint.Memo{Key: itemKey(who, d, h.ID), Value: h.Item})
	}
	return memos
}

// inline puts items of spliced turns in the places of their names.
func (l look) inline(d dialect.Lineage, r *request, body []byte, ids []string) (whole []byte, any bool) {
	ids = ids[max(0, len(ids)-recallMost):]
	keys := make([]checkpoint.MemoKey, len(ids))
	for i, id := range ids {
		keys[i] = itemKey(l.who, r.speaks, id)
	}
	kept := map[string][]byte{}
	for i, v := range l.values(keys) {
		if v != nil {
			kept[ids[i]] = v
		}
	}
	if len(kept) == 0 {
		return body, false
	}
	return d.Inline(body, func(id string) []byte { return kept[id] }), true
}

// expand puts turns that only Unbroken knows in the place of their names, back to
// one that the provider knows; nil: the request names none of ours.
func (l look) expand(d dialect.Lineage, r *request, body []byte, named string) (whole []byte) {
	for range maxLineage {
		kept := l.values([]checkpoint.MemoKey{turnKey(l.who, r.speaks, named)})[0]
		if kept == nil {
			return whole
		}
		if body = d.Expand(body, kept); body == nil {
			return nil
		}
		whole = body
		if named = d.Named(body); named == "" {
			return whole
		}
	}
	return whole
}
