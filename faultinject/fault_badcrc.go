package faultinject

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/eventstream"
)

// BadCRC sends a frame whose checksum does not match: behind it no boundary of a
// frame can be trusted, whatever comes (WIRE 1.6).
type BadCRC struct {
	At      At
	Prelude bool // the checksum of the lengths; else that of the whole frame
}

// crcOf is where the lengths of a frame end and their checksum begins.
const crcOf = 8

// Next implements Fault.
func (f BadCRC) Next(p Position, chunk []byte) Action {
	_, hit := f.At.here(p, chunk)
	if _, size, err := eventstream.Read(chunk, 0); !hit || err != nil || size == 0 {
		return Action{} // not here, or no frame: an answer that is not streamed
	}
	bad := bytes.Clone(chunk)
	if f.Prelude {
		bad[crcOf] ^= 1
	} else {
		bad[len(bad)-1] ^= 1
	}
	return do(Step{Write: bad})
}

// NeedsFraming implements Particular: text events have no checksums.
func (f BadCRC) NeedsFraming() Framing { return FrameBinary }

// parseBadCRC reads "bad-crc [prelude] [where]".
func parseBadCRC(w *words) (Fault, error) {
	f := BadCRC{Prelude: w.take("prelude")}
	var err error
	f.At, err = w.atBody()
	return f, err
}
