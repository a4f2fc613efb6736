package splice

import "bytes"

// fence is a code fence as CommonMark 0.31 §4.5 defines it.
type fence struct {
	mark byte // '`' or '~'
	size int  // number of marks
	info bool // a word stands behind them
}

// parseFence reads a line without its line break.
func parseFence(line []byte) (f fence, ok bool) {
	text := bytes.TrimLeft(line, " ")
	if len(line)-len(text) > 3 || len(text) < 3 || text[0] != '`' && text[0] != '~' {
		return fence{}, false
	}
	f.mark = text[0]
	rest := bytes.TrimLeft(text, string(f.mark))
	f.size = len(text) - len(rest)
	f.info = len(bytes.TrimSpace(rest)) > 0
	return f, f.size >= 3 && (f.mark != '`' || bytes.IndexByte(rest, '`') < 0)
}

// openFence reports whether a fence is open at the end of text.
func openFence(text []byte) (ok bool) {
	var open fence
	for len(text) > 0 {
		line, rest, whole := bytes.Cut(text, []byte{'\n'})
		text = rest
		f, is := parseFence(bytes.TrimSuffix(line, []byte{'\r'}))
		switch {
		case !is || !whole: // A fence line that is not over is still being said.
		case !ok:
			open, ok = f, true
		case f.mark == open.mark && f.size >= open.size && !f.info:
			ok = false
		}
	}
	return ok
}

// maxFenceLine bounds the line that opens a fence again.
const maxFenceLine = 80

// reopening reads the first line of a text as a fence.
type reopening struct {
	line  []byte
	state fate
	fence fence
}

// add takes the next rune of the line, read as raw; the line break is its end.
func (o *reopening) add(r rune, raw []byte) {
	if o.state != alive {
		return
	}
	if r == '\n' {
		var ok bool
		if o.fence, ok = parseFence(bytes.TrimSuffix(o.line, []byte{'\r'})); ok {
			o.state = found
		} else {
			o.state = dead
		}
		return
	}
	o.line = append(o.line, raw...)
	marks := min(len(o.line), 3)
	if len(o.line) > maxFenceLine || !bytes.HasPrefix([]byte("```"), o.line[:marks]) && !bytes.HasPrefix([]byte("~~~"), o.line[:marks]) {
		o.state = dead
	}
}
