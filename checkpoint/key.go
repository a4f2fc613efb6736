package checkpoint

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
)

// Scope separates callers: a keyed hash of the caller's credential (DESIGN §13),
// never the credential. The zero Scope is the caller without one.
type Scope [sha256.Size]byte

// RunID names a run of an agent, as its application told us or as we made it up.
type RunID string

// MaxRunID bounds a run id, in bytes.
const MaxRunID = 128

// ErrRunID refuses a run id.
var ErrRunID = errors.New("checkpoint: invalid run id")

// ParseRunID accepts 1 to [MaxRunID] bytes of visible ASCII without slashes, but
// not "." and "..": a run id is one segment of an admin path and one field of a
// log line. It never becomes a file name or a raw key (see [TurnKey]).
func ParseRunID(s string) (RunID, error) {
	switch {
	case s == "":
		return "", fmt.Errorf("%w: empty", ErrRunID)
	case len(s) > MaxRunID:
		return "", fmt.Errorf("%w: %d bytes, at most %d", ErrRunID, len(s), MaxRunID)
	case s == "." || s == "..":
		return "", fmt.Errorf("%w: %q", ErrRunID, s)
	}
	for i := range len(s) {
		if c := s[i]; c <= ' ' || c > '~' || c == '/' || c == '\\' {
			return "", fmt.Errorf("%w: byte %#02x at %d", ErrRunID, c, i)
		}
	}
	return RunID(s), nil
}

// Fingerprint identifies a request by its content.
type Fingerprint [sha256.Size]byte

// Request is what a fingerprint is made of.
type Request struct {
	Method, Path, Query string // as the client sent them
	// Versions are the values of the version and beta headers, in the order of
	// their names: they change what the body means.
	Versions []string
	Body     []byte
}

// Fingerprint returns the SHA-256 over the request's parts, each with its length.
func (r Request) Fingerprint() Fingerprint {
	h := sha256.New()
	add(h, "unbroken request 1")
	add(h, r.Method)
	add(h, r.Path)
	add(h, r.Query)
	length(h, len(r.Versions))
	for _, v := range r.Versions {
		add(h, v)
	}
	length(h, len(r.Body))
	h.Write(r.Body)
	return Fingerprint(h.Sum(nil))
}

func (f Fingerprint) String() string { return hex.EncodeToString(f[:]) }

// TurnKey identifies one turn: a caller's run and the request. It is a hash, so
// that nothing a client sends is ever a key, a path or a pattern. Parallel
// requests of one run have keys of their own.
type TurnKey [sha256.Size]byte

// Turn returns the key of the turn that request opens in a run of scope.
func Turn(scope Scope, run RunID, request Fingerprint) TurnKey {
	h := sha256.New()
	add(h, "unbroken turn 1")
	h.Write(scope[:])
	add(h, string(run))
	h.Write(request[:])
	return TurnKey(h.Sum(nil))
}

func (k TurnKey) String() string { return hex.EncodeToString(k[:]) }

// AskKey identifies what a caller asks, whatever the run.
type AskKey [sha256.Size]byte

// Ask returns the key under which the turns that scope opens with request are
// offered for adoption (see [Index]).
func Ask(scope Scope, request Fingerprint) AskKey {
	h := sha256.New()
	add(h, "unbroken ask 1")
	h.Write(scope[:])
	h.Write(request[:])
	return AskKey(h.Sum(nil))
}

func (k AskKey) String() string { return hex.EncodeToString(k[:]) }

// add hashes s with its length, so that no two lists of parts look alike.
func add(h hash.Hash, s string) {
	length(h, len(s))
	h.Write([]byte(s))
}

func length(h hash.Hash, n int) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
}
