package jsonwalk

// State says how far a document has come.
type State uint8

// The states of a Prefix. Complete and Invalid are final.
const (
	Incomplete State = iota // a sound beginning; more is needed
	Complete                // one whole document
	Invalid                 // no continuation can make it a document
)

// String names the state.
func (s State) String() string {
	return [...]string{"incomplete", "complete", "invalid"}[s]
}

// MaxDepth is the deepest nesting accepted, the limit of encoding/json.
const MaxDepth = 10_000

// Prefix validates one JSON document that arrives in pieces, keeping none of it. It accepts exactly what encoding/json
// accepts (which tolerates invalid UTF-8 in strings and duplicate keys). The zero value is ready. It allocates only when
// the nesting exceeds 256 levels. Copying a Prefix that is deeper than that shares the nesting of both.
type Prefix struct {
	at     step
	word   string // rest of the literal being read, when at == inWord
	key    bool   // the string being read is a member's key
	member bool   // the top-level object has something inside
	top    Kind
	depth  int
	near   [4]uint64 // one bit a level, outermost first: set for an object
	far    []uint64  // levels from 256 on
}

// step is what the validator expects next.
type step uint8

const (
	wantValue       step = iota // a value
	wantValueOrShut             // a value or ']', behind '['
	wantKeyOrShut               // a key or '}', behind '{'
	wantKey                     // a key, behind ',' in an object
	wantColon                   // ':'
	wantCommaOrShut             // ',' or the closing bracket, behind a value
	inString                    // in a string
	inEscape                    // behind a backslash
	inHex1                      // before the first of four hex digits
	inHex2                      //
	inHex3                      //
	inHex4                      //
	inWord                      // in true, false or null
	done                        //
	broken                      //
	inMinus                     // behind '-'; this and all below are numbers
	inZero                      // behind a leading 0: the number may end here
	inInt                       // in the integer part: the number may end here
	inPoint                     // behind '.'
	inFraction                  // in the fraction: the number may end here
	inE                         // behind 'e'
	inESign                     // behind the exponent's sign
	inExponent                  // in the exponent: the number may end here
)

// State tells how far the document is without feeding anything.
func (p *Prefix) State() State {
	switch p.at {
	case done:
		return Complete
	case broken:
		return Invalid
	}
	return Incomplete
}

func (p *Prefix) ended() bool { return p.at == done || p.at == broken }

// Top is the kind of the document, known from its first byte on; KindNone before.
func (p *Prefix) Top() Kind { return p.top }

// Empty reports whether the document is a complete object without members, which some providers send as a placeholder
// for tool arguments still to come.
func (p *Prefix) Empty() bool { return p.at == done && p.top == KindObject && !p.member }

// Push feeds the next bytes. used counts the bytes up to and including the end of the document (Complete), all of b
// (Incomplete), or those before the offending one (Invalid). Behind the end nothing is read: used is then 0. A top-level
// number has no end of its own; it is complete when white space follows (which is not counted in used) or at End.
func (p *Prefix) Push(b []byte) (used int, st State) {
	used = p.feed(b)
	return used, p.State()
}

// PushBody is Push for the body of a JSON string whose text is the document, as tool arguments travel: escapes are
// decoded on the fly and used counts bytes of the body. The body comes from a valid string and no escape may be split
// between two calls; pieces that were JSON strings of their own (deltas) never split one, surrogate pairs included.
func (p *Prefix) PushBody(body []byte) (used int, st State) {
	for used < len(body) {
		if body[used] != '\\' {
			run := used + 1
			for run < len(body) && body[run] != '\\' {
				run++
			}
			n := p.feed(body[used:run])
			if used += n; used < run || p.ended() {
				break
			}
			continue
		}
		c, size := bodyByte(body[used:])
		if size == 0 {
			p.at = broken
			break
		}
		one := [1]byte{c}
		if p.feed(one[:]) == 0 {
			break
		}
		used += size
		if p.ended() {
			break
		}
	}
	return used, p.State()
}

// bodyByte decodes the escape at the start of body to the one byte the validator needs to see: any code point beyond
// ASCII, or half of one, is only ever text in a string, so one stand-in serves for all. size is 0 for a broken escape.
func bodyByte(body []byte) (c byte, size int) {
	if r, ok := hex4(body); ok {
		return byte(min(r, 0x80)), 6
	}
	if len(body) > 1 {
		if c, ok := shortEscape(body[1]); ok {
			return c, 2
		}
	}
	return 0, 0
}

// End says that nothing follows. It completes a top-level number and otherwise changes nothing: a document still
// Incomplete was cut.
func (p *Prefix) End() State {
	if p.depth == 0 && p.numberMayEnd() {
		p.at = done
	}
	return p.State()
}
