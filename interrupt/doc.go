// Package interrupt holds everything that is known about failure: what a status,
// an in-band error, the end of a body or silence means for an unfinished turn.
//
// It turns signals and time into a [Cause]. Time arrives as an argument. What is
// unknown is a cause of its own and never treated as safe. Truncation and end
// are different values: nothing here calls a stream complete; only a dialect's
// semantic end does that (DESIGN §1.1, §2).
//
// Layer 1: imports turn and std only.
package interrupt
