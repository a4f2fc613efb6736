package jsonwalk

// Offset returns the position of inner inside outer, the slice it was cut from. It needs no pointer arithmetic: as long
// as only two-index slicing lies between them, both share the end of their capacity. Everything this package hands out
// keeps that rule, also across several levels. It panics when inner was not cut from outer.
func Offset(outer, inner []byte) int {
	at := cap(outer) - cap(inner)
	if at < 0 || at+len(inner) > len(outer) || len(inner) > 0 && &outer[at] != &inner[0] {
		panic("BUG: jsonwalk: offset of a slice that was not cut from the outer one")
	}
	return at
}

// Patch replaces the bytes [At, End) of a source by With. At == End inserts.
type Patch struct {
	At, End int
	With    []byte
}

// Apply appends src to dst with all patches applied. They must be ordered and must not overlap (two insertions at one
// place keep their order); anything else is a mistake of the program and panics. dst must not share memory with src.
func Apply(dst, src []byte, patches []Patch) []byte {
	from := 0
	for _, p := range patches {
		if p.At < from || p.End < p.At || p.End > len(src) {
			panic("BUG: jsonwalk: patches out of order or out of range")
		}
		dst = append(dst, src[from:p.At]...)
		dst = append(dst, p.With...)
		from = p.End
	}
	return append(dst, src[from:]...)
}

// SetMember appends obj to dst with the member key, given plain, set to the raw value val: the value of the member that
// counts (the last of that name) is replaced, else a member is added behind the last one. All other bytes stay. It
// returns nil when obj is not a well-formed object. dst must not share memory with obj or val.
func SetMember(dst, obj []byte, key string, val []byte) []byte {
	var found, last []byte
	w := Members(obj)
	for k, v, ok := w.Next(); ok; k, v, ok = w.Next() {
		if last = v; KeyIs(k, key) {
			found = v
		}
	}
	if w.Err() != nil {
		return nil
	}
	if found != nil {
		at := Offset(obj, found)
		dst = append(dst, obj[:at]...)
		dst = append(dst, val...)
		return append(dst, obj[at+len(found):]...)
	}
	at := space(obj, 0) + 1
	if last != nil {
		at = Offset(obj, last) + len(last)
	}
	dst = append(dst, obj[:at]...)
	if last != nil {
		dst = append(dst, ',')
	}
	dst = append(dst, '"')
	dst = Escape(dst, []byte(key))
	dst = append(dst, '"', ':')
	dst = append(dst, val...)
	return append(dst, obj[at:]...)
}

// DeleteMember appends obj to dst without any member of that plain key (all duplicates go: taking only the last would
// bring an earlier one back to life), each with its comma. All other bytes stay. It returns nil when obj is not a
// well-formed object. dst must not share memory with obj.
func DeleteMember(dst, obj []byte, key string) []byte {
	var (
		from    int  // obj[from:] is not yet copied
		end     int  // end of the member before
		kept    bool // some earlier member stays, so a deleted one takes the comma in front of it
		leading bool // only deleted members so far: the comma behind the last of them goes too
	)
	w := Members(obj)
	for k, v, ok := w.Next(); ok; k, v, ok = w.Next() {
		start := Offset(obj, k) - 1
		if leading {
			from = start
		}
		if !KeyIs(k, key) {
			kept, leading = true, false
		} else if kept {
			dst = append(dst, obj[from:max(from, end)]...)
			from = Offset(obj, v) + len(v)
		} else {
			if !leading {
				dst = append(dst, obj[:start]...)
			}
			leading = true
		}
		end = Offset(obj, v) + len(v)
	}
	if w.Err() != nil {
		return nil
	}
	if leading {
		from = end
	}
	return append(dst, obj[from:]...)
}
