// Package golden compares what a test got with what a file says, and rewrites the
// file only when it is told to:
//
//	go test ./planner -rewrite
//
// Law: rewriting is a flag and never automatic; a missing file is a failure, not
// an invitation. For use by tests only.
package golden
