// Package interactions is the Gemini Interactions dialect: typed events around
// steps that open, grow and close (WIRE 1.5).
//
// Law: steps keep their order and their index, and nothing is committed to a history
// that is not ours. An interaction is kept by the provider unless the request says
// store:false; a kept one is handed back by its id in later requests, so that the
// rest of it can only come from the provider itself. Such turns are refused by name
// rather than continued under another id.
//
//	decode.go   an event to deltas       request.go   a request to facts
//	frame.go    the shape of an event    continue.go  the request for the rest
//	step.go     the shape of a step      rewrite.go   a later attempt's event
//	fault.go    errors and statuses      write.go     events of our own
//
// Pure: no clock, no I/O, no goroutines.
package interactions
