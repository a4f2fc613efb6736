package jsonwalk

// Valid reports whether b is exactly one JSON document with white space around it, as encoding/json.Valid does. It is the
// straight-line twin of Prefix for documents that are in hand as a whole, and allocates nothing at any depth.
func Valid(b []byte) bool {
	i := strictEnd(b, space(b, 0), 0)
	return i >= 0 && space(b, i) == len(b)
}

// strictEnd is valueEnd with every byte of the value checked. depth counts the objects and arrays around it.
func strictEnd(b []byte, i, depth int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return textEnd(b, i)
	case '{', '[':
		if depth == MaxDepth {
			return -1
		}
		return strictNestedEnd(b, i, depth+1)
	}
	return valueEnd(b, i)
}

func strictNestedEnd(b []byte, i, depth int) int {
	object, shut := b[i] == '{', b[i]+2 // '}' and ']' stand two behind their partners
	if i = space(b, i+1); i < len(b) && b[i] == shut {
		return i + 1
	}
	for {
		if object {
			if i = keyEnd(b, i); i < 0 {
				return -1
			}
		}
		if i = strictEnd(b, i, depth); i < 0 {
			return -1
		}
		if i = space(b, i); i == len(b) {
			return -1
		}
		switch b[i] {
		case ',':
			i = space(b, i+1)
		case shut:
			return i + 1
		default:
			return -1
		}
	}
}

// keyEnd returns the start of the value of the member whose key starts at i, or -1.
func keyEnd(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	if i = textEnd(b, i); i < 0 {
		return -1
	}
	if i = space(b, i); i == len(b) || b[i] != ':' {
		return -1
	}
	return space(b, i+1)
}

// textEnd is stringEnd with escapes and control characters checked.
func textEnd(b []byte, i int) int {
	i++
	for {
		if i = plainEnd(b, i); i == len(b) || b[i] < ' ' {
			return -1
		}
		if b[i] == '"' {
			return i + 1
		}
		if i+1 == len(b) {
			return -1
		}
		if _, ok := shortEscape(b[i+1]); ok {
			i += 2
		} else if _, ok := hex4(b[i:]); ok {
			i += 6
		} else {
			return -1
		}
	}
}
