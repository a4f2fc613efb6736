// Package jsonfold grows one JSON document out of the pieces that a stream tells of it.
//
// Law: what was written is kept as it was written. Strings grow by the escaped bodies of their pieces, so that a
// character that came in two halves is whole again; every other value is a copy of the wire's bytes; members stand in
// the order in which they were first named. It knows no provider: which member grows and which is replaced is for the
// caller to say. Nothing is shared with the input.
package jsonfold
