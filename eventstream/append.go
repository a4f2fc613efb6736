package eventstream

import (
	"encoding/binary"
	"hash/crc32"
	"math"
)

// Append appends a frame of a kind ([Event], [Exception]) and name with a JSON payload to dst, its headers in the order
// in which AWS sends them.
func Append(dst []byte, kind, name string, payload []byte) []byte {
	from := begin(&dst)
	if kind == Exception {
		dst = appendHeader(dst, ":exception-type", name)
	} else {
		dst = appendHeader(dst, ":event-type", name)
	}
	dst = appendHeader(dst, ":content-type", "application/json")
	dst = appendHeader(dst, ":message-type", kind)
	return end(dst, from, payload)
}

// AppendFault appends the frame of an error that the service has no model of: its code and text are headers, and it has no
// payload.
func AppendFault(dst []byte, code, message string) []byte {
	from := begin(&dst)
	dst = appendHeader(dst, ":error-code", code)
	dst = appendHeader(dst, ":error-message", message)
	dst = appendHeader(dst, ":message-type", Fault)
	return end(dst, from, nil)
}

// Reload appends frame f with another payload to dst; its headers stay as they were.
func (f *Frame) Reload(dst, payload []byte) []byte {
	from := begin(&dst)
	return end(append(dst, f.Headers...), from, payload)
}

// begin leaves room for the prelude and returns where the frame begins.
func begin(dst *[]byte) int {
	from := len(*dst)
	*dst = append(*dst, make([]byte, preludeLen)...)
	return from
}

// end appends the payload to the headers and fills in lengths and checksums.
func end(dst []byte, from int, payload []byte) []byte {
	headers := len(dst) - from - preludeLen
	dst = append(dst, payload...)
	if len(dst)-from+4 > math.MaxUint32 {
		panic("BUG: eventstream: frame of more than 4 GiB")
	}
	f := dst[from:]
	binary.BigEndian.PutUint32(f, uint32(len(f)+4))
	binary.BigEndian.PutUint32(f[4:], uint32(headers))
	binary.BigEndian.PutUint32(f[8:], crc32.ChecksumIEEE(f[:8]))
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(f))
}

// appendHeader appends a string header. Names and values of ours are short; a value that a provider gave is cut at what
// the format can hold.
func appendHeader(dst []byte, name, val string) []byte {
	if len(name) > math.MaxUint8 {
		panic("BUG: eventstream: header name of more than 255 bytes")
	}
	val = val[:min(len(val), math.MaxInt16)]
	dst = append(append(dst, byte(len(name))), name...)
	dst = append(dst, typeString)
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(val)))
	return append(dst, val...)
}
