package jsonwalk

// feed runs the machine over b and returns the number of bytes it took. It stops before the byte that breaks the
// document and behind the byte that completes it.
func (p *Prefix) feed(b []byte) int {
	i := 0
	for i < len(b) {
		switch p.at {
		case inString:
			i = p.text(b, i)
			continue
		case done, broken:
			return i
		}
		c := b[i]
		if p.at <= wantCommaOrShut && isSpace(c) {
			i++
			continue
		}
		if p.at >= inMinus {
			next := numberStep(p.at, c)
			if next == broken && p.numberMayEnd() && (p.depth > 0 || isSpace(c)) {
				p.value() // A number ends at the byte behind it: look at that byte again.
				continue
			}
			if p.at = next; next == broken {
				return i
			}
			i++
			continue
		}
		p.byte(c)
		if p.at == broken {
			return i
		}
		i++
	}
	return i
}

// text reads inside a string up to its end or its next escape. Control characters must not stand there unescaped.
func (p *Prefix) text(b []byte, i int) int {
	if i = plainEnd(b, i); i == len(b) {
		return i
	}
	switch b[i] {
	case '"':
		if p.key {
			p.key, p.at = false, wantColon
		} else {
			p.value()
		}
	case '\\':
		p.at = inEscape
	default:
		p.at = broken
		return i
	}
	return i + 1
}

// byte takes one byte outside the plain text of a string and outside white space.
func (p *Prefix) byte(c byte) {
	switch p.at {
	case wantValue:
		p.open(c)
	case wantValueOrShut:
		if c == ']' {
			p.shut(c)
		} else {
			p.open(c)
		}
	case wantKeyOrShut, wantKey:
		switch {
		case c == '"':
			p.key, p.member, p.at = true, true, inString
		case c == '}' && p.at == wantKeyOrShut:
			p.shut(c)
		default:
			p.at = broken
		}
	case wantColon:
		p.must(c == ':', wantValue)
	case wantCommaOrShut:
		switch {
		case c != ',':
			p.shut(c)
		case p.inObject():
			p.at = wantKey
		default:
			p.at = wantValue
		}
	case inEscape:
		if _, ok := shortEscape(c); ok {
			p.at = inString
		} else {
			p.must(c == 'u', inHex1)
		}
	case inHex1, inHex2, inHex3:
		p.must(isHex(c), p.at+1)
	case inHex4:
		p.must(isHex(c), inString)
	case inWord:
		if c != p.word[0] {
			p.at = broken
		} else if p.word = p.word[1:]; p.word == "" {
			p.value()
		}
	}
}

// open begins the value whose first byte is c.
func (p *Prefix) open(c byte) {
	kind := kindOfByte(c)
	if p.top == KindNone {
		p.top = kind
	}
	switch kind {
	case KindObject, KindArray:
		if p.depth == MaxDepth {
			p.at = broken
			return
		}
		p.nest(kind == KindObject)
	case KindString:
		p.at = inString
	case KindBool, KindNull:
		p.at = inWord
		switch c {
		case 't':
			p.word = "rue"
		case 'f':
			p.word = "alse"
		default:
			p.word = "ull"
		}
	case KindNumber:
		switch c {
		case '-':
			p.at = inMinus
		case '0':
			p.at = inZero
		default:
			p.at = inInt
		}
	default:
		p.at = broken
	}
}

// value notes that a value has ended.
func (p *Prefix) value() {
	if p.depth == 0 {
		p.at = done
	} else {
		p.at = wantCommaOrShut
	}
}

// shut takes a closing bracket, which must fit the one that is open.
func (p *Prefix) shut(c byte) {
	if p.inObject() && c != '}' || !p.inObject() && c != ']' {
		p.at = broken
		return
	}
	p.depth--
	p.value()
}

func (p *Prefix) must(ok bool, next step) {
	if !ok {
		next = broken
	}
	p.at = next
}

// numberMayEnd reports whether the number being read is whole so far.
func (p *Prefix) numberMayEnd() bool {
	return p.at == inZero || p.at == inInt || p.at == inFraction || p.at == inExponent
}

// numberStep is the grammar of RFC 8259 section 6; broken means that c does not carry the number on.
func numberStep(at step, c byte) step {
	digit := '0' <= c && c <= '9'
	switch {
	case digit && at == inMinus && c == '0':
		return inZero
	case digit && (at == inMinus || at == inInt):
		return inInt
	case digit && (at == inPoint || at == inFraction):
		return inFraction
	case digit && (at == inE || at == inESign || at == inExponent):
		return inExponent
	case c == '.' && (at == inZero || at == inInt):
		return inPoint
	case (c == 'e' || c == 'E') && (at == inZero || at == inInt || at == inFraction):
		return inE
	case (c == '+' || c == '-') && at == inE:
		return inESign
	}
	return broken
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// nest enters an object or array.
func (p *Prefix) nest(object bool) {
	word, bit := p.level(p.depth)
	if object {
		*word |= bit
		p.at = wantKeyOrShut
	} else {
		*word &^= bit
		p.at = wantValueOrShut
	}
	p.depth++
}

func (p *Prefix) inObject() bool {
	word, bit := p.level(p.depth - 1)
	return *word&bit != 0
}

// level finds the bit of a nesting level.
func (p *Prefix) level(n int) (*uint64, uint64) {
	bit := uint64(1) << (n % 64)
	if n /= 64; n < len(p.near) {
		return &p.near[n], bit
	}
	n -= len(p.near)
	if n == len(p.far) {
		p.far = append(p.far, 0)
	}
	return &p.far[n], bit
}
