package jsonwalk

import "bytes"

// Stencil recognises documents that say the same as one that was read, but for the body of one string: a stream repeats
// its ids, its model and its shape with every few letters of text. To compare is many times cheaper than to walk.
//
// Its law: a document that it recognises differs from the learned one in nothing but that body and, where the learned one
// ends with one, the body of the padding behind it. Whoever reads neither the text's length nor the padding would read
// the same of both. The zero Stencil recognises nothing.
type Stencil struct {
	head, tail []byte // around the text, quotes included
	pad        int    // length of what of tail comes before the body of the padding; 0: there is none
}

// padding is the key of letters that say nothing, which OpenAI puts into each event of a stream against readers of packet
// sizes (include_obfuscation).
const padding = `"obfuscation":"`

// maxStencil bounds what is learned by heart; a document of that size has better things to be compared with.
const maxStencil = 2 << 10

// Learn makes doc the pattern. body is the one string's, without its quotes and not empty, and aliases doc. doc is not
// kept.
func (s *Stencil) Learn(doc, body []byte) {
	from := Offset(doc, body)
	to := from + len(body)
	s.Forget()
	if len(body) == 0 || len(doc) > maxStencil || from == 0 || doc[from-1] != '"' || to == len(doc) || doc[to] != '"' {
		return
	}
	s.head = append(s.head, doc[:from]...)
	s.tail = append(s.tail, doc[to:]...)
	// Of the padding only one at the end of the document is let vary, so that what is behind it is nothing but "}.
	at := bytes.LastIndex(s.tail, []byte(padding))
	if at <= 0 {
		return
	}
	if pad := at + len(padding); stringEnd(s.tail, pad-1) == len(s.tail)-1 && len(s.tail)-2 > pad {
		s.pad = pad
		s.tail = append(s.tail[:pad], `"}`...)
	}
}

// Forget makes s recognise nothing.
func (s *Stencil) Forget() { s.head, s.tail, s.pad = s.head[:0], s.tail[:0], 0 }

// Body returns the string's body in doc, which is not empty and aliases doc; ok is false for a document that s does not
// recognise, which may be any.
func (s *Stencil) Body(doc []byte) (body []byte, ok bool) {
	n := len(s.head)
	if n == 0 || len(doc) < n+len(s.tail) || !bytes.Equal(doc[:n], s.head) {
		return nil, false
	}
	end := textEnd(doc, n-1) - 1 // of the body
	if end <= n {
		return nil, false
	}
	rest := doc[end:]
	if s.pad == 0 {
		return doc[n:end], bytes.Equal(rest, s.tail)
	}
	if len(rest) <= len(s.tail) || !bytes.Equal(rest[:s.pad], s.tail[:s.pad]) || stringEnd(rest, s.pad-1) != len(rest)-1 || rest[len(rest)-1] != '}' {
		return nil, false
	}
	return doc[n:end], true
}
