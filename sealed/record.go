package sealed

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// outerRun is the run of every sealed record, as the store sees it.
const outerRun checkpoint.RunID = "sealed"

// turnKey is the key of one turn's log.
type turnKey struct {
	secret []byte
	block  cipher.Block
}

// freshKey makes a key for a new turn.
func freshKey() turnKey {
	secret := make([]byte, KeySize)
	_, _ = rand.Read(secret) // it never fails
	return newTurnKey(secret)
}

// wrap returns the record that the store gets in place of r, with the key of its
// log. The envelope travels in Thread.
func (k Keys) wrap(key checkpoint.TurnKey, r checkpoint.Record, t turnKey) checkpoint.Record {
	outer := checkpoint.Record{Run: outerRun, Owner: r.Owner, Created: r.Created, Updated: r.Updated, State: r.State}
	r.Log, r.State = nil, checkpoint.State{}
	p, _ := r.AppendBinary(append([]byte(nil), t.secret...)) // its error is always nil
	outer.Thread = string(k.Seal(p, "turn "+key.String()))
	return outer
}

// unwrap reverses wrap; the log of outer begins at offset.
func (k Keys) unwrap(key checkpoint.TurnKey, outer *checkpoint.Record, offset int64) (*checkpoint.Record, turnKey, error) {
	if outer.Run != outerRun {
		return nil, turnKey{}, fmt.Errorf("%w: not sealed", checkpoint.ErrCorrupt)
	}
	p, err := k.Open([]byte(outer.Thread), "turn "+key.String())
	if err != nil {
		return nil, turnKey{}, err
	}
	if len(p) < KeySize {
		return nil, turnKey{}, fmt.Errorf("%w: sealed record", checkpoint.ErrCorrupt)
	}
	r, err := checkpoint.DecodeRecord(p[KeySize:])
	if err != nil {
		return nil, turnKey{}, err
	}
	t := newTurnKey(p[:KeySize])
	r.Owner, r.Created, r.Updated, r.State = outer.Owner, outer.Created, outer.Updated, outer.State
	if len(outer.Log) > 0 {
		r.Log = t.crypt(offset, outer.Log)
	}
	return r, t, nil
}

func newTurnKey(secret []byte) turnKey {
	block, err := aes.NewCipher(secret)
	if err != nil {
		panic("BUG: sealed: " + err.Error())
	}
	return turnKey{secret, block}
}

// crypt encrypts or decrypts the log's bytes at offset. The key is of this log
// alone, so that the position is all the nonce there needs to be.
func (t turnKey) crypt(offset int64, p []byte) []byte {
	var iv [aes.BlockSize]byte
	binary.BigEndian.PutUint64(iv[8:], uint64(offset)/aes.BlockSize)
	stream := cipher.NewCTR(t.block, iv[:])
	var skip [aes.BlockSize]byte
	stream.XORKeyStream(skip[:offset%aes.BlockSize], skip[:offset%aes.BlockSize])
	out := make([]byte, len(p))
	stream.XORKeyStream(out, p)
	return out
}
