package filestore

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"github.com/unbroken-llm/unbroken/checkpoint"
)

// A record file:
//
//	version(1) fence(8) number of asks(1) asks(32 each) record crc32c(4)
//
// all big endian, the record as package checkpoint encodes it, without its log.
const version = 1

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maxAsks bounds under how many questions one turn is offered: one in practice.
const maxAsks = 4

func encode(fence uint64, asks []checkpoint.AskKey, r checkpoint.Record) []byte {
	r.Log = nil
	b := binary.BigEndian.AppendUint64([]byte{version}, fence)
	b = append(b, byte(len(asks)))
	for _, a := range asks {
		b = append(b, a[:]...)
	}
	b, _ = r.AppendBinary(b) // its error is always nil
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func decode(b []byte) (fence uint64, asks []checkpoint.AskKey, r *checkpoint.Record, err error) {
	if len(b) > 0 && b[0] > version {
		return 0, nil, nil, fmt.Errorf("%w: record file %d, this is %d", checkpoint.ErrVersion, b[0], version)
	}
	n := len(b) - 4
	if n < 10 || b[0] == 0 || binary.BigEndian.Uint32(b[n:]) != crc32.Checksum(b[:n], castagnoli) {
		return 0, nil, nil, fmt.Errorf("%w: record file of %d bytes", checkpoint.ErrCorrupt, len(b))
	}
	fence = binary.BigEndian.Uint64(b[1:])
	rest := b[10:n]
	if int(b[9]) > maxAsks || len(rest) < 32*int(b[9]) {
		return 0, nil, nil, fmt.Errorf("%w: record file", checkpoint.ErrCorrupt)
	}
	for range b[9] {
		asks = append(asks, checkpoint.AskKey(rest[:32]))
		rest = rest[32:]
	}
	r, err = checkpoint.DecodeRecord(rest)
	return fence, asks, r, err
}

// replace writes a file so that after a crash there is the old one or the new one.
func replace(path string, b []byte) (err error) {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err = f.Write(b); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		_ = os.Remove(tmp)
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}

// A log file is frames: length(4) crc32c of the bytes(4) bytes.
const frameHead = 8

func frame(p []byte) []byte {
	b := make([]byte, 0, frameHead+len(p))
	b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(p, castagnoli))
	return append(b, p...)
}

// frames reads the frames of a log file and returns their bytes and where the last
// good one ends. What follows was never acknowledged as being on disk, or was torn
// by the death of the machine.
func frames(r io.Reader) (log []byte, end int64, err error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return nil, 0, err
	}
	for p := b; len(p) >= frameHead; {
		n := int64(binary.BigEndian.Uint32(p))
		if n > int64(len(p)-frameHead) {
			break
		}
		body := p[frameHead : frameHead+n]
		if n == 0 || crc32.Checksum(body, castagnoli) != binary.BigEndian.Uint32(p[4:]) {
			break
		}
		log = append(log, body...)
		p = p[frameHead+n:]
		end += frameHead + n
	}
	return log, end, nil
}
