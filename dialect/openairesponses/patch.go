package openairesponses

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

func patch(data, value, with []byte) jsonwalk.Patch {
	at := jsonwalk.Offset(data, value)
	return jsonwalk.Patch{At: at, End: at + len(value), With: with}
}

// plainKey decodes a member's key. Keys of this protocol are ASCII; one with escapes is legal JSON, and rare enough to
// allocate for.
func plainKey(k []byte) []byte {
	if bytes.IndexByte(k, '\\') < 0 {
		return k
	}
	return jsonwalk.Unescape(nil, k)
}

func plain(body []byte) string { return string(jsonwalk.Unescape(nil, body)) }

// text decodes a raw string value; "" for anything else.
func text(raw []byte) string {
	body, _ := jsonwalk.String(raw)
	return plain(body)
}

// quoted makes a string value of an escaped body.
func quoted(body []byte) []byte { return append(append([]byte{'"'}, body...), '"') }

// quote makes a string value of plain text.
func quote(s string) []byte { return append(jsonwalk.Escape([]byte{'"'}, []byte(s)), '"') }

// list makes an array of raw values.
func list(values [][]byte) []byte {
	return append(append([]byte{'['}, bytes.Join(values, []byte{','})...), ']')
}
