package anthropic

import (
	"bytes"
	"unicode/utf8"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
	"github.com/unbroken-llm/unbroken/turn"
)

// extend puts the partial turn behind the caller's messages, and the question behind that; false when the last message
// cannot be read.
func (e *edit) extend(partial []piece) bool {
	last := jsonwalk.Last(e.messages)
	if last == nil {
		return false
	}
	end := jsonwalk.Offset(e.req.Body, last) + len(last)
	behind := []byte(nil)
	if text(jsonwalk.Get(last, "role")) == "assistant" {
		if !e.prolong(jsonwalk.Get(last, "content"), partial) {
			return false
		}
	} else {
		behind = append(behind, `,{"role":"assistant","content":[`...)
		behind = append(appendPieces(behind, partial), `]}`...)
	}
	if e.c.Manner == turn.Asked {
		behind = append(behind, `,{"role":"user","content":[{"type":"text","text":"`...)
		behind = jsonwalk.Escape(behind, e.question(partial))
		behind = append(behind, `"}]}`...)
	}
	if len(behind) > 0 {
		e.insert(end, behind)
	}
	return true
}

// prolong extends the content of the caller's own trailing assistant message: text goes on in the text that is there.
func (e *edit) prolong(content []byte, partial []piece) bool {
	body := e.req.Body
	if _, ok := jsonwalk.String(content); ok {
		at := jsonwalk.Offset(body, content)
		if allText(partial) {
			var joined []byte
			for _, p := range partial {
				joined = append(joined, p.text...)
			}
			e.insert(at+len(content)-1, joined)
			return true
		}
		e.insert(at, []byte(`[{"type":"text","text":`))
		if partial[0].text != nil {
			e.insert(at+len(content)-1, partial[0].text)
			partial = partial[1:]
		}
		rest := []byte("}")
		if len(partial) > 0 {
			rest = appendPieces(append(rest, ','), partial)
		}
		e.insert(at+len(content), append(rest, ']'))
		return true
	}
	if jsonwalk.KindOf(content) != jsonwalk.KindArray {
		return false
	}
	at := jsonwalk.Offset(body, content) + 1
	block := jsonwalk.Last(content)
	if block != nil {
		at = jsonwalk.Offset(body, block) + len(block)
	}
	if old := jsonwalk.Get(block, "text"); old != nil && partial[0].text != nil && text(jsonwalk.Get(block, "type")) == "text" {
		e.insert(jsonwalk.Offset(body, old)+len(old)-1, partial[0].text)
		partial = partial[1:]
	}
	if len(partial) > 0 {
		var rest []byte
		if block != nil {
			rest = append(rest, ',')
		}
		e.insert(at, appendPieces(rest, partial))
	}
	return true
}

func allText(ps []piece) bool {
	for _, p := range ps {
		if p.text == nil {
			return false
		}
	}
	return true
}

// appendPieces appends content blocks with commas between them.
func appendPieces(dst []byte, ps []piece) []byte {
	for i, p := range ps {
		if i > 0 {
			dst = append(dst, ',')
		}
		if p.raw != nil {
			dst = append(dst, p.raw...)
			continue
		}
		dst = append(dst, `{"type":"text","text":"`...)
		dst = append(dst, p.text...)
		dst = append(dst, `"}`...)
	}
	return dst
}

// question is the user turn that asks for the rest. It quotes the end of the answer and asks for it again, word for
// word, so that the seam can be proved (DESIGN §4).
func (e *edit) question(partial []piece) []byte {
	q := []byte("Your previous message was cut off by a connection fault before it was complete.")
	if end := anchor(partial, e.c.Anchor); len(end) > 0 {
		q = append(q, " It ends with exactly these characters, between the tags:\n<end>"...)
		q = append(q, end...)
		q = append(q, "</end>\nBegin your reply by repeating exactly those characters, without the tags, and go straight on from there."...)
	} else {
		q = append(q, " Go straight on from the point where it stops."...)
	}
	q = append(q, " Do not greet, explain, apologise or comment, do not start over, do not open a code fence that is already open,"+
		" and keep to the language, style and format of the message so far: your reply is joined to it as it is."...)
	if e.c.Sentinel != "" {
		q = append(q, " If the message was already complete, reply with only "...)
		q = append(q, e.c.Sentinel...)
		q = append(q, '.')
	}
	return q
}

// anchor is the last n bytes of the text, fewer where n would split a character.
func anchor(partial []piece, n int) []byte {
	var plain []byte
	for _, p := range partial {
		plain = jsonwalk.Unescape(plain, p.text)
	}
	plain = bytes.TrimSpace(plain)
	if n <= 0 || len(plain) == 0 {
		return nil
	}
	at := max(0, len(plain)-n)
	for at < len(plain) && !utf8.RuneStart(plain[at]) {
		at++
	}
	return bytes.TrimSpace(plain[at:])
}
