package jsonwalk

import "math"

// Kind is the type of a JSON value.
type Kind uint8

// The kinds. KindNone is the zero value: no value, or bytes that start none.
const (
	KindNone Kind = iota
	KindObject
	KindArray
	KindString
	KindNumber
	KindBool
	KindNull
)

// String names the kind as the JSON standard does.
func (k Kind) String() string {
	return [...]string{"none", "object", "array", "string", "number", "boolean", "null"}[k]
}

// KindOf tells the kind of a raw value by its first byte that is not white space. It does not validate the rest.
func KindOf(raw []byte) Kind {
	i := space(raw, 0)
	if i == len(raw) {
		return KindNone
	}
	return kindOfByte(raw[i])
}

func kindOfByte(c byte) Kind {
	switch {
	case c == '{':
		return KindObject
	case c == '[':
		return KindArray
	case c == '"':
		return KindString
	case c == 't' || c == 'f':
		return KindBool
	case c == 'n':
		return KindNull
	case c == '-' || '0' <= c && c <= '9':
		return KindNumber
	}
	return KindNone
}

// IsNull reports whether raw is the literal null. An absent value (nil) is not null.
func IsNull(raw []byte) bool { return string(raw) == "null" }

// Bool reads a trimmed raw value as a boolean; ok is false for any other kind.
func Bool(raw []byte) (v, ok bool) {
	switch string(raw) {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}

// Int reads a trimmed raw value as an integer. ok is false for other kinds, for a fraction or an exponent (also 1.0 and
// 1e3, which encoding/json refuses for integers too) and for what does not fit.
func Int(raw []byte) (v int64, ok bool) {
	digits, neg := raw, false
	if len(digits) > 0 && digits[0] == '-' {
		digits, neg = digits[1:], true
	}
	if len(digits) == 0 || len(digits) > 1 && digits[0] == '0' {
		return 0, false
	}
	// Accumulate below zero: the negative range is the larger one, so MinInt64 needs no case of its own.
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		d := int64(c - '0')
		if v < (math.MinInt64+d)/10 {
			return 0, false
		}
		v = v*10 - d
	}
	if neg {
		return v, true
	}
	if v == math.MinInt64 {
		return 0, false
	}
	return -v, true
}
