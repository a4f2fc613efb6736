package dialect

import (
	"strings"

	"github.com/unbroken-llm/unbroken/internal/jsonwalk"
)

const (
	// maxHinted and maxHintedName bound what a hint names, in names and in bytes
	// of each: a provider made them up.
	maxHinted     = 32
	maxHintedName = 128
)

// Hint words what a model is told of its own calls that an interruption took out of
// the turn (DESIGN §6). It never saw them fail; without a word it may take them for
// done, or for never asked.
func Hint(names []string) string {
	names = names[:min(len(names), maxHinted)]
	short := make([]string, len(names))
	for i, name := range names {
		short[i] = strings.ToValidUTF8(name[:min(len(name), maxHintedName)], "")
	}
	return "[Transmission note: the connection broke while further tool calls of this turn were being written. They were not run: " +
		strings.Join(short, ", ") + ". Issue them again if they are still needed.]"
}

// Insert is the edit that puts words at a place.
func (p Place) Insert(words string) jsonwalk.Patch {
	with := jsonwalk.Escape([]byte(p.Open), []byte(words))
	return jsonwalk.Patch{At: p.At, End: p.At, With: append(with, p.Close...)}
}

// EndOf is the end of a result's content, a value of body: inside of a text, or
// behind the last part of a list, whose text parts have the given type. The zero
// Place if it is neither.
func EndOf(body, content []byte, typ string) Place {
	switch jsonwalk.KindOf(content) {
	case jsonwalk.KindString:
		p := Place{At: jsonwalk.Offset(body, content) + len(content) - 1, Open: `\n\n`}
		if len(content) == 2 {
			p.Open = ""
		}
		return p
	case jsonwalk.KindArray:
		parts := jsonwalk.All(content)
		if len(parts) > 0 {
			return Behind(body, parts[len(parts)-1], typ)
		}
		return Place{At: jsonwalk.Offset(body, content) + 1, Open: textPart(typ), Close: `"}`}
	}
	return Place{}
}

// Behind is the place of a text part behind an element of a list.
func Behind(body, element []byte, typ string) Place {
	return Place{At: jsonwalk.Offset(body, element) + len(element), Open: "," + textPart(typ), Close: `"}`}
}

func textPart(typ string) string { return `{"type":"` + typ + `","text":"` }

// noteMember is what a note is called in a result that is an object.
const noteMember = "transmission_note"

// LastOf is the place of a last member of an object.
func LastOf(body, object []byte) Place {
	if jsonwalk.KindOf(object) != jsonwalk.KindObject {
		return Place{}
	}
	p := Place{At: jsonwalk.Offset(body, object) + len(object) - 1, Open: `,"` + noteMember + `":"`, Close: `"`}
	w := jsonwalk.Members(object)
	if _, _, any := w.Next(); !any {
		p.Open = p.Open[1:]
	}
	return p
}
