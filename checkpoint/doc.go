// Package checkpoint holds the rules by which an unfinished turn outlives the
// connection, and the process, that it was streamed through (DESIGN §8).
//
// A checkpoint is one [Record]: who the turn belongs to and the log of what was
// said (package turn), never a second transcript and never the request. Whoever
// holds a turn holds a [Fence], a number that only grows; a write with an older
// one is [ErrFenced], and who gets that stops. Writes may be repeated without
// harm, because a store may fail after the effect as well as before it. Corrupt is
// an error and never "absent".
//
// [Store] is the contract; storetest is the battery that each store passes. The
// store in memory.go is the twin that tests and single processes use. It alone
// may hold a lock; nothing here reads a clock.
//
// Layer 1: imports turn (in tests) and std only.
package checkpoint
