package openaichat

import (
	"bytes"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/sse"
	"github.com/unbroken-llm/unbroken/turn"
)

// identity is what every chunk of a message shares, as raw values of its first
// head (FIELD-REPORTS C14).
type identity struct {
	vals      [len(identityKeys)][]byte
	nullUsage bool // the host writes "usage":null into chunks without usage
	texts     bool // words stand in choices[].text, see Wire
}

var identityKeys = [...]string{"id", "object", "created", "model", "service_tier", "system_fingerprint"}

const keyObject = 1

// required is how many of identityKeys every chunk must have.
const required = 4

func identify(head []byte) identity {
	var id identity
	w := jsonwalk.Members(head)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		if i := identityIndex(key); i >= 0 {
			id.vals[i] = val
		} else if string(key) == "usage" {
			id.nullUsage = jsonwalk.IsNull(val)
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

// fallback stands in for what a host's head lacks (Moonshot has no object).
var fallback = [required]string{`""`, `"chat.completion.chunk"`, `0`, `""`}

func (id *identity) value(i int) []byte {
	if v := id.vals[i]; v != nil || i >= required {
		return v
	}
	if id.texts && i == keyObject {
		return []byte(`"text_completion"`)
	}
	return []byte(fallback[i])
}

// chunk renders a chunk of our own: its choices and, when given, its usage.
func (id *identity) chunk(dst, choices, usage []byte) []byte {
	return sse.Append(dst, "", append(id.members(choices, usage), '}'))
}

// chunkWith renders a chunk of our own with one more member.
func (id *identity) chunkWith(dst, choices []byte, b beside) []byte {
	c := append(id.members(choices, nil), ',')
	return sse.Append(dst, "", append(appendMember(c, string(b.member), b.value), '}'))
}

// members renders a chunk but for its last brace.
func (id *identity) members(choices, usage []byte) []byte {
	b := []byte{'{'}
	for i, key := range identityKeys {
		if v := id.value(i); v != nil {
			b = append(appendMember(b, key, v), ',')
		}
	}
	b = appendMember(b, "choices", choices)
	switch {
	case usage != nil:
		b = appendMember(append(b, ','), "usage", usage)
	case id.nullUsage:
		b = append(b, `,"usage":null`...)
	}
	return b
}

// hasRole reports whether the client has seen who speaks in a choice: the role
// comes once, with the head or the first text (FIELD-REPORTS D16).
func hasRole(said *turn.Snapshot, choice int) bool {
	for i := range said.Blocks {
		if said.Blocks[i].Choice == choice {
			return true
		}
	}
	e := jsonwalk.Elements(jsonwalk.Get(said.Head, "choices"))
	for raw, ok := e.Next(); ok; raw, ok = e.Next() {
		c, err := readChoice(raw)
		if err == nil && c.index == choice && bytes.Contains(c.delta, []byte(`"role"`)) {
			return true
		}
	}
	return false
}
