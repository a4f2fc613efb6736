package sealed

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// KeySize is the size of a key, in bytes.
const KeySize = 32

// Keys is a ring of keys. The first one seals, all open: to rotate, put a new one
// first and drop the old one after the longest time to live.
type Keys struct{ ring []ringKey }

type ringKey struct {
	id   [4]byte // of its hash
	aead cipher.AEAD
}

// ParseKeys reads keys, one for each line or word, each 32 bytes in hex or base64.
// The error does not show any of them.
func ParseKeys(text string) (Keys, error) {
	var k Keys
	for i, word := range strings.Fields(text) {
		raw, err := hex.DecodeString(word)
		if err != nil {
			raw, err = base64.StdEncoding.DecodeString(word)
		}
		if err != nil || len(raw) != KeySize {
			return Keys{}, fmt.Errorf("encryption key %d: it must be %d bytes in hex or base64", i+1, KeySize)
		}
		block, err := aes.NewCipher(raw)
		if err != nil {
			return Keys{}, fmt.Errorf("encryption key %d: %w", i+1, err)
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return Keys{}, fmt.Errorf("encryption key %d: %w", i+1, err)
		}
		sum := sha256.Sum256(append([]byte("unbroken key id 1"), raw...))
		k.ring = append(k.ring, ringKey{id: [4]byte(sum[:4]), aead: aead})
	}
	if len(k.ring) == 0 {
		return Keys{}, errors.New("no encryption key")
	}
	return k, nil
}

// An envelope: "ub1" id of the key(4) nonce(12) sealed.
const magic = "ub1"

// Len is how many keys there are.
func (k Keys) Len() int { return len(k.ring) }

// Seal seals p with the first key, bound to what it is about.
func (k Keys) Seal(p []byte, about string) []byte { return k.ring[0].seal(p, about) }

func (key ringKey) seal(p []byte, about string) []byte {
	b := append([]byte(magic), key.id[:]...)
	at := len(b)
	b = append(b, make([]byte, key.aead.NonceSize())...)
	_, _ = rand.Read(b[at:]) // it never fails
	return key.aead.Seal(b, b[at:], p, []byte(about))
}

// Open opens, with whichever key it takes, what Seal made. [checkpoint.ErrCorrupt].
func (k Keys) Open(b []byte, about string) ([]byte, error) {
	rest, ok := strings.CutPrefix(string(b), magic)
	if !ok || len(rest) < 4 {
		return nil, fmt.Errorf("%w: not sealed", checkpoint.ErrCorrupt)
	}
	for _, key := range k.ring {
		if string(key.id[:]) != rest[:4] {
			continue
		}
		n := key.aead.NonceSize()
		if len(rest) < 4+n {
			break
		}
		p, err := key.aead.Open(nil, []byte(rest[4:4+n]), []byte(rest[4+n:]), []byte(about))
		if err != nil {
			return nil, fmt.Errorf("%w: the seal is broken", checkpoint.ErrCorrupt)
		}
		return p, nil
	}
	return nil, fmt.Errorf("%w: sealed with key %x, which is not known here", checkpoint.ErrCorrupt, rest[:4])
}
