package openaichat

import (
	"bytes"
	"strconv"

	"github.com/unbroken-llm/unbroken/dialect"
)

// Wire is how a stream is spelled: the half of the dialect that reads and writes
// events. The zero value is Chat Completions.
type Wire struct {
	// Texts: what is said stands in choices[].text, as the legacy completions
	// have it (WIRE 1.1). All else is chat's. A host that answers them in chat's
	// own chunks (Mistral's fill-in-the-middle) is read and written to in kind.
	Texts bool
}

// NewDecoder implements dialect.Dialect.
func (w Wire) NewDecoder(*dialect.Request) dialect.Decoder { return &Decoder{texts: w.Texts} }

// identify reads the head of a message.
func (w Wire) identify(head []byte) identity {
	id := identify(head)
	id.texts = w.Texts && !bytes.Equal(id.vals[keyObject], []byte(fallback[keyObject]))
	return id
}

// choices renders choices with one element. members are those of its delta and text
// is what they say, both escaped; reason is a raw value or nil.
func (id *identity) choices(choice int, members, text, reason []byte) []byte {
	if !id.texts {
		return appendChoice(nil, choice, members, reason)
	}
	dst := append([]byte(nil), `[{"index":`...)
	dst = strconv.AppendInt(dst, int64(choice), 10)
	dst = append(dst, `,"text":`...)
	dst = appendQuoted(dst, text)
	return append(appendReason(append(dst, `,"logprobs":null`...), reason), "}]"...)
}
