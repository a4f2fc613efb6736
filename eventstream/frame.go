package eventstream

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// Errors of a stream that cannot be read on. The texts are the tokens that metrics count.
var (
	ErrPrelude  = errors.New("eventstream: prelude_checksum")
	ErrChecksum = errors.New("eventstream: frame_checksum")
	ErrLength   = errors.New("eventstream: frame_length")
	ErrTooLong  = errors.New("eventstream: frame exceeds the size limit")
	ErrHeaders  = errors.New("eventstream: malformed_headers")
)

const (
	preludeLen = 12             // two lengths and their CRC
	overhead   = preludeLen + 4 // what a frame without headers and payload takes
)

// Kinds of message, as ":message-type" spells them.
const (
	Event     = "event"
	Exception = "exception"
	Fault     = "error" // not modelled by the service; its code and text are headers
)

// Frame is one message. Its slices alias the bytes it was read from.
type Frame struct {
	// Kind is the ":message-type"; nil when there is none, which is read as an event.
	Kind []byte
	// Name is the ":event-type", ":exception-type" or ":error-code".
	Name    []byte
	Headers []byte // as they stand on the wire
	Payload []byte
	Raw     []byte // the whole frame
}

// IsEvent reports whether the frame is an ordinary event, as opposed to an exception or an error.
func (f *Frame) IsEvent() bool { return len(f.Kind) == 0 || string(f.Kind) == Event }

// Header returns the value of a string header, nil when there is none of that name and type.
func (f *Frame) Header(name string) []byte {
	for h := f.Headers; len(h) > 0; {
		key, typ, val, rest, ok := cutHeader(h)
		if !ok {
			return nil
		}
		if typ == typeString && string(key) == name {
			return val
		}
		h = rest
	}
	return nil
}

// Read reads the frame that begins b. size is its length in bytes; it is larger than len(b) while the frame is not
// whole, and 0 while not even that is known, and then f is empty. limit bounds size; 0 means DefaultLimit.
func Read(b []byte, limit int) (f Frame, size int, err error) {
	size, headers, err := prelude(b, limit)
	if err != nil || size == 0 || size > len(b) {
		return Frame{}, size, err
	}
	b = b[:size]
	if crc32.ChecksumIEEE(b[:size-4]) != binary.BigEndian.Uint32(b[size-4:]) {
		return Frame{}, size, ErrChecksum
	}
	f = Frame{Raw: b, Headers: b[preludeLen : preludeLen+headers], Payload: b[preludeLen+headers : size-4]}
	return f, size, f.name()
}

// prelude reads and checks the lengths at the start of a frame.
func prelude(b []byte, limit int) (size, headers int, err error) {
	if len(b) < preludeLen {
		return 0, 0, nil
	}
	if limit == 0 {
		limit = DefaultLimit
	}
	total, head := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	switch {
	case crc32.ChecksumIEEE(b[:8]) != binary.BigEndian.Uint32(b[8:]):
		return 0, 0, ErrPrelude
	case total < overhead || head > total-overhead:
		return 0, 0, ErrLength
	case uint64(total) > uint64(limit):
		return 0, 0, ErrTooLong
	}
	return int(total), int(head), nil
}

// name reads the headers that every frame has, and checks the others' form.
func (f *Frame) name() error {
	var exception, code []byte
	for h := f.Headers; len(h) > 0; {
		key, typ, val, rest, ok := cutHeader(h)
		if !ok {
			return ErrHeaders
		}
		if typ == typeString {
			switch string(key) {
			case ":message-type":
				f.Kind = val
			case ":event-type":
				f.Name = val
			case ":exception-type":
				exception = val
			case ":error-code":
				code = val
			}
		}
		h = rest
	}
	switch string(f.Kind) {
	case Exception:
		f.Name = exception
	case Fault:
		f.Name = code
	}
	return nil
}

const typeString = 7

// fixed are the sizes in bytes of header values that have one, by type.
var fixed = [...]int{0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}

// cutHeader cuts the first header off h.
func cutHeader(h []byte) (key []byte, typ byte, val, rest []byte, ok bool) {
	n := int(h[0])
	if len(h) < n+2 {
		return nil, 0, nil, nil, false
	}
	key, typ, rest = h[1:n+1], h[n+1], h[n+2:]
	size := 0
	switch {
	case typ == 6 || typ == typeString:
		if len(rest) < 2 {
			return nil, 0, nil, nil, false
		}
		size, rest = int(binary.BigEndian.Uint16(rest)), rest[2:]
	case int(typ) < len(fixed):
		size = fixed[typ]
	default:
		return nil, 0, nil, nil, false
	}
	if len(rest) < size {
		return nil, 0, nil, nil, false
	}
	return key, typ, rest[:size], rest[size:], true
}
