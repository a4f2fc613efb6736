// Package filestore keeps checkpoints in a directory, for one process without
// Redis (DESIGN §8).
//
// Its law: what was acknowledged is there after the process died. Records are
// written to a temporary file, synced, renamed, and the directory synced. Logs are
// appended to, in frames with a checksum; text reaches the disk itself within
// [Config].Sync, so that the death of the machine costs no more than that, and a
// torn end is cut off when the directory is opened again. One process owns the
// directory; every owner of an earlier one is dead. File names are hashes, nothing
// a client sent. A full or failing disk is a store that is unavailable.
//
// The directory must be on a local disk: a call waits for the file system and
// cannot be interrupted.
//
//	lock                the owning process holds a lock on it
//	turns/ab/<turn>.rec the record without its log
//	turns/ab/<turn>.log the log
//	secrets/<hash>      what all processes that use the directory agree on
//
// Layer 4: imports checkpoint.
package filestore
