package jsonwalk

// Get follows path down from b and returns the raw value found there, trimmed and aliasing b, or nil when a step is
// absent or a walked level is malformed. A step into an object is a plain (unescaped) key, of which the last duplicate
// counts; a step into an array is a decimal index ("0"). With an empty path it returns the value b itself, trimmed.
//
// Each call reads every level to its end. Code that wants several members of one object walks [Members] once instead.
func Get(b []byte, path ...string) []byte {
	if len(path) == 0 {
		i := space(b, 0)
		end := valueEnd(b, i)
		if end < 0 || space(b, end) != len(b) {
			return nil
		}
		return b[i:end]
	}
	for _, step := range path {
		switch KindOf(b) {
		case KindObject:
			b = member(b, step)
		case KindArray:
			b = element(b, step)
		default:
			return nil
		}
		if b == nil {
			return nil
		}
	}
	return b
}

func member(obj []byte, name string) (found []byte) {
	w := Members(obj)
	for key, val, ok := w.Next(); ok; key, val, ok = w.Next() {
		if KeyIs(key, name) {
			found = val
		}
	}
	if w.Err() != nil {
		return nil
	}
	return found
}

func element(arr []byte, step string) []byte {
	n := 0
	for _, c := range []byte(step) {
		if c < '0' || c > '9' || n > len(arr) {
			return nil
		}
		n = n*10 + int(c-'0')
	}
	if step == "" {
		return nil
	}
	var found []byte
	e := Elements(arr)
	for val, ok := e.Next(); ok; val, ok = e.Next() {
		if n == 0 {
			found = val
		}
		n--
	}
	if e.Err() != nil {
		return nil
	}
	return found
}
