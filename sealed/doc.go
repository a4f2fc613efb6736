// Package sealed encrypts checkpoints at rest (DESIGN §13): a wrapper around any
// store with its powers.
//
// Its law: the store sees of a turn its key, owner, times and state, which name no
// content, and nothing else in clear. Each turn has a random key of its own. That
// key and the record's identity are sealed with AES-256-GCM under a key of the
// operator's, bound to the turn, so that no record can stand in for another. The
// log is encrypted with AES-256-CTR under the turn's key, by position: a byte at
// an offset is always the same byte, so that appends stay idempotent and cost
// nothing more. That hides the log, but does not prove it genuine: whoever may
// write to the store can damage it, which is found when it is decoded.
// Where two processes wrote different text at one offset, because a fail-over lost
// the first, whoever kept both copies of the store learns their difference.
//
// A record under a key that is not known, or not sealed at all, is
// checkpoint.ErrCorrupt: never text, never "absent".
//
// Layer 4: imports checkpoint.
package sealed
