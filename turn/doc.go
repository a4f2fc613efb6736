// Package turn is the vocabulary of the house: what one model turn consists of,
// in words that no provider's JSON appears in.
//
// A [Delta] is one observed increment of a turn. A [Snapshot] is the fold of
// deltas: ordered blocks, identity, usage, finish, and what is still open.
// Folding is total over well-formed deltas, strict about order and
// deterministic; a delta that cannot follow what was said is a named error and
// leaves the snapshot as it was.
//
// Text travels as the *body of a JSON string, still escaped*, exactly as the
// wire spelled it. Concatenating bodies concatenates the strings, nothing is
// decoded on the hot path, and a surrogate pair written as two escapes cannot be
// torn apart by a decoder (FIELD-REPORTS C6). Plain decodes when a plan needs
// the words.
//
// Layer 0: imports std and internal/jsonwalk only; no time, no I/O, no
// goroutines.
package turn
