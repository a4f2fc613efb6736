// Package gemini is the generateContent dialect, as the Gemini API and Vertex AI
// stream it from `:streamGenerateContent`, with alt=sse or as an array (WIRE 1.4).
//
// Law: a chunk is parts, and parts keep what they carry. The wire names no block,
// no start and no end; the decoder opens a block for each run of text, of thought
// and of calls, and gives a thought signature on an answer part a place of its
// own, so that nothing that is said later can slip under it. The turn ends with a
// finishReason, or with the reason why the prompt was blocked; there is no marker,
// and the end of the body means nothing. What is rendered are chunks of the one
// message the client already has, with its responseId, its modelVersion and its
// framing: genai for Go looks for LF LF before CR LF CR LF and takes a mixture of
// both for one event.
//
//	decode.go   an event to deltas         request.go   a request to facts
//	chunk.go    the shape of a chunk       path.go      what the path says of it
//	part.go     the shape of a part        continue.go  the request for the rest
//	stream.go   calls that arrive in bits  rewrite.go   a later attempt's event
//	args.go     arguments by JSON path     write.go     chunks of our own
//	array.go    streams without alt=sse    elements.go  their framing
//	beat.go     signs of life              replay.go    a turn from its start
//	beside.go   what stands beside the parts, as it is noted and told again
//
// Pure: no clock, no I/O, no goroutines.
package gemini
