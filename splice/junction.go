package splice

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// unspaced are scripts that write words without spaces between them: there is no gluing in them, and no sign of it.
var unspaced = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar, unicode.Tibetan,
}

// wordly reports whether r is part of a word in a script with spaces.
func wordly(r rune) bool {
	return r == '_' || (unicode.IsLetter(r) || unicode.IsMark(r) || unicode.IsDigit(r)) && !unicode.In(r, unspaced...)
}

// closes reports whether r ends a clause or a bracket, so that prose has a space before the next word.
func closes(r rune) bool {
	switch r {
	case '.', '!', '?', ',', ';', ':', ')', ']', '}', '%', '…', '”', '»':
		return true
	}
	return false
}

// junction is the place where the exact reading would put two texts together.
type junction struct {
	last     rune // last character of what was said, white space included; 0 when nothing was said
	before   rune // the character before it
	lineHead bool // nothing but white space stands before it in its line
	code     bool // inside a code fence or a JSON document, where punctuation needs no space
}

func newJunction(said []byte, code bool) junction {
	last, size := utf8.DecodeLastRune(said)
	if size == 0 {
		return junction{lineHead: true}
	}
	before, _ := utf8.DecodeLastRune(said[:len(said)-size])
	line := said[bytes.LastIndexByte(said, '\n')+1:]
	return junction{last: last, before: before, lineHead: len(bytes.TrimSpace(line)) == 0, code: code}
}

// inWord reports whether a word can be glued at all.
func (j junction) inWord() bool { return wordly(j.last) }

// glues reports whether first, the first character of a continuation, would run two words together.
func (j junction) glues(first rune) bool { return wordly(j.last) && wordly(first) }

// tight reports whether first would start a word right behind a clause that is over. Code and JSON are written
// so, and so are numbers ("3." + "14").
func (j junction) tight(first rune) bool {
	if j.code || !closes(j.last) || !wordly(first) {
		return false
	}
	return !unicode.IsDigit(first) || !unicode.IsDigit(j.before)
}

// answer is a question that may need more text.
type answer uint8

const (
	no answer = iota
	yes
	unknown
)

// blocks are the ways a Markdown block begins; none of them means anything in the middle of a line, so a text that
// begins so is a new text.
var blocks = []string{"# ", "## ", "### ", "#### ", "- ", "* ", "• ", "```", "~~~"}

// breaksLine reports whether head, the first bytes of a continuation, begins a block in the middle of a line.
func (j junction) breaksLine(head []byte) answer {
	if j.lineHead || j.code || j.last == ' ' {
		return no
	}
	for _, b := range blocks {
		if len(head) >= len(b) && string(head[:len(b)]) == b {
			return yes
		}
		if len(head) < len(b) && b[:len(head)] == string(head) {
			return unknown
		}
	}
	return no
}
