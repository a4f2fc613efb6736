package upstream

import (
	"errors"
)

// chunked removes the chunked transfer coding (RFC 9112, section 7.1) in place. It keeps no bytes: whatever one read delivered is
// consumed whole, wherever it was split. Chunk extensions and trailers are read over. A line may end in a bare LF, as every
// widespread parser allows; anything else out of place is an error, because guessing here is how responses get misread.
type chunked struct {
	state  chunkState
	digits uint8  // of the size seen so far
	line   int    // bytes of framing since the last payload byte, against floods of extensions or trailers
	left   uint64 // payload bytes of the current chunk still to come
}

type chunkState uint8

const (
	chunkSize      chunkState = iota // hex digits
	chunkPad                         // blanks between the size and what follows it
	chunkExt                         // the rest of the size line
	chunkSizeLF                      // CR seen after the size
	chunkData                        // left bytes of payload
	chunkDataEnd                     // CR or LF behind the payload
	chunkDataLF                      // CR seen behind the payload
	trailerStart                     // first byte of a trailer line
	trailerLine                      // inside a trailer line
	trailerFinalLF                   // CR seen on the empty line
	chunkDone
)

const (
	maxChunkDigits = 15       // hex digits of a size, leading zeros included
	maxFraming     = 16 << 10 // bytes between two payload bytes
)

var (
	errChunkSize    = errors.New("malformed chunk size")
	errChunkEnd     = errors.New("chunk is longer than its size")
	errChunkTrailer = errors.New("malformed end of a chunked body")
	errChunkFlood   = errors.New("too much chunk framing")
)

// decode moves the payload in p together, at the place of its first byte, and returns it with the number of bytes of p consumed:
// fewer than len(p) only when the body ended inside p. One memmove per further chunk is the whole cost.
func (c *chunked) decode(p []byte) (payload []byte, n int, err error) {
	start, end := 0, 0
	for n < len(p) && c.state != chunkDone {
		if c.state == chunkData {
			run := len(p) - n
			if uint64(run) > c.left {
				run = int(c.left)
			}
			if start == end {
				start, end = n, n+run
			} else {
				copy(p[end:], p[n:n+run])
				end += run
			}
			n += run
			if c.left -= uint64(run); c.left == 0 {
				c.state, c.line = chunkDataEnd, 0
			}
			continue
		}
		if k := c.quick(p[n:]); k > 0 {
			n += k
			continue
		}
		if err := c.step(p[n]); err != nil {
			return p[start:end], n, err
		}
		n++
	}
	return p[start:end], n, nil
}

// quick takes the end of a chunk and the next size line, each if all of it is there in its plainest form, which it is for nearly every
// chunk: that is several times cheaper than stepping through the states. It takes nothing it is not sure of. What it means is what step
// makes of the same bytes; FuzzChunked holds one against the other.
func (c *chunked) quick(p []byte) (n int) {
	if c.state == chunkDataEnd && len(p) > 1 && p[0] == '\r' && p[1] == '\n' {
		c.state, n = chunkSize, 2
	}
	if c.state != chunkSize || c.digits != 0 {
		return n
	}
	size, line := uint64(0), p[n:]
	for i := 0; i < len(line) && i < 8; i++ {
		if d, ok := hexDigit(line[i]); ok {
			size = size<<4 | d
			continue
		}
		if size > 0 && i+1 < len(line) && line[i] == '\r' && line[i+1] == '\n' {
			c.state, c.left = chunkData, size
			return n + i + 2
		}
		break
	}
	return n
}

// step takes one byte of framing.
func (c *chunked) step(b byte) error {
	if c.line++; c.line > maxFraming {
		return errChunkFlood
	}
	switch c.state {
	case chunkSize:
		if d, ok := hexDigit(b); ok {
			if c.digits++; c.digits > maxChunkDigits {
				return errChunkSize
			}
			c.left = c.left<<4 | d
			return nil
		}
		if c.digits == 0 {
			return errChunkSize
		}
		return c.afterSize(b)
	case chunkPad:
		return c.afterSize(b)
	case chunkExt:
		switch b {
		case '\n':
			c.sized()
		case '\r':
			c.state = chunkSizeLF
		}
	case chunkSizeLF:
		if b != '\n' {
			return errChunkSize
		}
		c.sized()
	case chunkDataEnd:
		switch b {
		case '\r':
			c.state = chunkDataLF
		case '\n':
			c.state = chunkSize
		default:
			return errChunkEnd
		}
	case chunkDataLF:
		if b != '\n' {
			return errChunkEnd
		}
		c.state = chunkSize
	case trailerStart:
		switch b {
		case '\r':
			c.state = trailerFinalLF
		case '\n':
			c.state = chunkDone
		default:
			c.state = trailerLine
		}
	case trailerLine:
		if b == '\n' {
			c.state = trailerStart
		}
	case trailerFinalLF:
		if b != '\n' {
			return errChunkTrailer
		}
		c.state = chunkDone
	}
	return nil
}

func (c *chunked) afterSize(b byte) error {
	switch b {
	case ' ', '\t':
		c.state = chunkPad
	case ';':
		c.state = chunkExt
	case '\r':
		c.state = chunkSizeLF
	case '\n':
		c.sized()
	default:
		return errChunkSize
	}
	return nil
}

// sized ends a size line.
func (c *chunked) sized() {
	c.digits = 0
	if c.left == 0 {
		c.state = trailerStart
	} else {
		c.state = chunkData
	}
}

func hexDigit(b byte) (uint64, bool) {
	if d := b - '0'; d < 10 {
		return uint64(d), true
	}
	if d := (b | 0x20) - 'a'; d < 6 {
		return uint64(d) + 10, true
	}
	return 0, false
}
