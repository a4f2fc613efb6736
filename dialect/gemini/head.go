package gemini

import (
	"bytes"
	"strconv"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// headOf is the head of a message: the data of its first chunk, and behind it,
// white space to JSON, the CR of a stream whose lines end in CRLF. It is all that
// later events of ours need to be framed like the rest.
func headOf(data, raw []byte) []byte {
	if !bytes.HasSuffix(raw, []byte("\r\n")) {
		return data
	}
	return append(append(make([]byte, 0, len(data)+1), data...), '\r')
}

// lineEnd is how lines of the client's stream end. Google writes CRLF (all
// recordings from its own hosts). In front of the head it is LF: that order of the
// two is the one that genai for Go can read.
func lineEnd(said *turn.Snapshot) string {
	if said != nil && len(said.Head) > 0 && said.Head[len(said.Head)-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// frame renders an event. Its data is one line: no SDK but one joins several (WIRE
// 3.4), and in JSON a line end is white space.
func frame(dst []byte, said *turn.Snapshot, name, data []byte) []byte {
	eol := lineEnd(said)
	if len(name) > 0 {
		dst = append(append(append(dst, "event: "...), name...), eol...)
	}
	dst = append(dst, "data: "...)
	from := len(dst)
	dst = append(dst, data...)
	for i := from; i < len(dst); i++ {
		if dst[i] == '\n' || dst[i] == '\r' {
			dst[i] = ' '
		}
	}
	return append(append(dst, eol...), eol...)
}

// identity is what every chunk of a message shares, as raw values of its head; nil
// is what the head did not say.
type identity [len(identityKeys)][]byte

var identityKeys = [...]string{"modelVersion", "createTime", "responseId"}

func identify(head []byte) (id identity) {
	w := jsonwalk.Members(head)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		if i := identityIndex(key); i >= 0 {
			id[i] = val
		}
	}
	return id
}

func identityIndex(key []byte) int {
	for i, name := range identityKeys {
		if string(key) == name {
			return i
		}
	}
	return -1
}

// chunk renders a chunk of our own with one candidate; finish is plain, "" for
// none, usage raw or nil.
func (id *identity) chunk(index int, parts []byte, finish string, usage []byte) []byte {
	b := append([]byte(`{"candidates":[{"content":{"parts":[`), parts...)
	b = append(b, `],"role":"model"}`...)
	if finish != "" {
		b = append(append(b, `,"finishReason":`...), quote([]byte(finish))...)
	}
	b = append(b, `,"index":`...)
	b = append(strconv.AppendInt(b, int64(index), 10), `}]`...)
	if usage != nil {
		b = append(append(b, `,"usageMetadata":`...), usage...)
	}
	for i, key := range identityKeys {
		if id[i] != nil {
			b = append(append(b, `,"`+key+`":`...), id[i]...)
		}
	}
	return append(b, '}')
}

// quote renders plain text as a JSON string.
func quote(plain []byte) []byte {
	return append(jsonwalk.Escape([]byte{'"'}, plain), '"')
}
