// Package openaichat is the Chat Completions dialect, as OpenAI speaks it and as
// every host that calls itself compatible bends it (WIRE 1.1).
//
// Law: read what is there, forward what is not understood, and make nothing up.
// The decoder walks each chunk once and in place; it opens blocks that the wire
// only implies (chat names no text block, no start and no end) and closes a block
// when its choice goes on to something else. Whatever it renders is a whole
// chunk of the one message the client already has: id, created, model and
// fingerprint of the first head, one role, one finish, one usage.
//
//	decode.go    an event to deltas          request.go   a request to facts
//	chunk.go     the shape of a chunk        continue.go  the request for the rest
//	lane.go      blocks of one choice        rewrite.go   a later attempt's event
//	call.go      which call a fragment is    write.go     chunks of our own
//	wire.go      the spelling of words       body.go      a request being edited
//	beside.go    what stands beside a text, as it is noted and told again
//
// Pure: no clock, no I/O, no goroutines.
package openaichat
