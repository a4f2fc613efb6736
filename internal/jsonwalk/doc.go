// Package jsonwalk reads and edits JSON in place: it hands out slices of the bytes it was given and never builds a tree.
//
// Law: pass bytes, parse copies of nothing (FIELD-REPORTS J8). Whatever was not asked for keeps its order, its escapes
// and its white space. Standard library only, no allocation on any read path, no state outside the values it returns.
//
// Two levels of trust live side by side. [Valid] and [Prefix] are strict: they accept what encoding/json accepts and
// nothing else. The walkers ([Members], [Elements], [Get]) look only at the level they walk and skip over nested values
// by their brackets, so a caller who needs to know that a whole document is sound asks Valid first. On unsound input
// the walkers still terminate, never panic and never hand out bytes from outside the input.
//
// Every slice handed out aliases the input and is cut with two indices only, so that [Offset] can find its place.
package jsonwalk
