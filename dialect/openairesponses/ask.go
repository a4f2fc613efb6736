package openairesponses

import (
	"bytes"
	"unicode/utf8"

	"github.com/unbroken-llm/unbroken/dialect"
)

// ask words the user message of an asked continuation. It quotes the tail and has it repeated, so that the seam can be
// found rather than guessed (DESIGN §4); it names a word for "nothing is missing". It says nothing of who is speaking to
// whom: the caller's instructions keep their authority (FIELD-REPORTS D10).
func ask(r *dialect.Request, c dialect.Continuation, said []byte) []byte {
	q := []byte("Your previous message was cut off by a connection fault before it was complete.")
	if end := anchor(said, c.Anchor); len(end) > 0 {
		q = append(q, " It ends with exactly these characters, between the tags:\n<end>"...)
		q = append(q, end...)
		q = append(q, "</end>\nBegin your reply by repeating exactly those characters, without the tags, and go straight on from there."...)
	} else {
		q = append(q, " Go straight on from the point where it stops."...)
	}
	q = append(q, " Do not greet, explain, apologise or comment, do not start over, do not open a code fence that is already open,"+
		" and keep to the language, style and format of the message so far: your reply is joined to it as it is."...)
	if r.Structured {
		q = append(q, " The whole is one JSON document; write only the rest of it."...)
	}
	if c.Sentinel != "" {
		q = append(q, " If the message was already complete, reply with only "...)
		q = append(append(q, c.Sentinel...), '.')
	}
	return q
}

// anchor is the last n bytes of the text, fewer where n would split a character.
func anchor(said []byte, n int) []byte {
	said = bytes.TrimSpace(said)
	if n <= 0 || len(said) == 0 {
		return nil
	}
	at := max(0, len(said)-n)
	for at < len(said) && !utf8.RuneStart(said[at]) {
		at++
	}
	return bytes.TrimSpace(said[at:])
}
