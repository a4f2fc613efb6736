package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Memo is what later requests of a caller need to know of a turn that is over
// (DESIGN §6): a few bytes under a key that such a request can make again.
type Memo struct {
	Key MemoKey
	// Value is not empty.
	Value []byte
}

// MemoKey identifies a memo. It is a hash, so that nothing a client sends is ever
// a key, a path or a pattern.
type MemoKey [sha256.Size]byte

// MemoOf returns the key of what scope is to be told of about parts. Kinds are
// constants of the program.
func MemoOf(scope Scope, kind string, parts ...string) MemoKey {
	h := sha256.New()
	add(h, "unbroken memo 1")
	h.Write(scope[:])
	add(h, kind)
	length(h, len(parts))
	for _, p := range parts {
		add(h, p)
	}
	return MemoKey(h.Sum(nil))
}

func (k MemoKey) String() string { return hex.EncodeToString(k[:]) }

// Memos is a [Store] that keeps memos. They belong to no turn and to no owner.
type Memos interface {
	// Remember keeps each memo for ttl, in place of what was under its key.
	// Doing so again is harmless. The store may forget the oldest before their
	// time, to stay within its bounds. ErrTooLarge: a value that it never keeps.
	Remember(ctx context.Context, ttl time.Duration, memos ...Memo) error
	// Recall returns the values under keys, in the order of the keys; nil where
	// there is none: never was, expired or forgotten.
	Recall(ctx context.Context, keys ...MemoKey) ([][]byte, error)
}
