package proxy

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"hash"
	"net/http"
	"sync"
	"time"

	"github.com/unbroken-llm/unbroken/checkpoint"
	"github.com/unbroken-llm/unbroken/upstream"
)

const (
	scopeName  = "scope"
	scopeBytes = 32
	// secretWait bounds how long a start waits for the store, secretRetry how
	// often one that was away is asked again.
	secretWait  = time.Second
	secretRetry = time.Second
)

// scoper tells callers apart under one key. It keeps keyed hashes: to key one is most of
// the work.
type scoper struct{ keyed sync.Pool }

func newScoper(key []byte) *scoper {
	return &scoper{keyed: sync.Pool{New: func() any { return &keyedHash{Hash: hmac.New(sha256.New, key)} }}}
}

// keyedHash is a hash with room for what goes in and comes out.
type keyedHash struct {
	hash.Hash
	text []byte
}

func (s *scoper) of(credential string) (who checkpoint.Scope) {
	m := s.keyed.Get().(*keyedHash)
	m.Reset()
	m.text = append(m.text[:0], credential...)
	_, _ = m.Write(m.text)
	clear(m.text) // no credential is kept
	m.text = m.Sum(m.text[:0])
	copy(who[:], m.text)
	s.keyed.Put(m)
	return who
}

// ScopeOf tells whose request one with header h is, as the proxy tells its own; ok is
// false for one without a credential.
func (s *Server) ScopeOf(h http.Header) (who checkpoint.Scope, ok bool) {
	var fields upstream.Header
	for name, values := range h {
		for _, v := range values {
			fields = append(fields, upstream.Field{Name: name, Value: v})
		}
	}
	who = s.scope(fields)
	return who, who != (checkpoint.Scope{})
}

// keyScopes sets the key of the hash that tells callers apart. Processes that share
// a store agree on one that it keeps (DESIGN §13); until it can be reached a key of
// this process stands in, under which nobody else finds its turns.
func (s *Server) keyScopes(key []byte) {
	if len(key) > 0 {
		s.scopes.Store(newScoper(key))
		return
	}
	fresh := make([]byte, scopeBytes)
	_, _ = rand.Read(fresh) // never fails
	s.scopes.Store(newScoper(fresh))
	kept, ok := s.store.(checkpoint.Secrets)
	if !ok || s.ownStore || s.agree(kept, fresh) {
		return
	}
	s.retry(secretRetry, func() bool { return s.agree(kept, fresh) })
}

// agree takes the key that the store keeps. It reports whether that is settled.
func (s *Server) agree(kept checkpoint.Secrets, fresh []byte) bool {
	ctx, cancel := context.WithTimeout(context.Background(), secretWait)
	defer cancel()
	key, err := kept.Secret(ctx, scopeName, fresh)
	switch {
	case errors.Is(err, checkpoint.ErrUnavailable):
		return false
	case err != nil || len(key) != scopeBytes:
		s.cfg.Log.Error("the store's scope key is unusable: no other process finds this one's turns", "error", err)
	default:
		s.scopes.Store(newScoper(key))
	}
	return true
}
