// Package anthropic is the Anthropic Messages dialect: POST /v1/messages with "stream": true.
//
// Law: bytes in, bytes out. The package holds no state beyond one decoder's block numbers, decides nothing and never
// closes, completes or signs what the provider left unfinished: an unfinished tool call is never rendered runnable and
// an unfinished thinking block is closed only under a mark that a later request is cleaned of.
//
//	event                 deltas
//	message_start         Head, Count (usage), Open…Close for blocks already in message.content
//	content_block_start   Open, Text and Sign for what the start itself says
//	content_block_delta   Text (text, thinking, input_json), Sign (signature), Extra (citations, unknown), Pulse (empty)
//	content_block_stop    Close
//	message_delta         Count (usage), Finish (stop_reason)
//	message_stop          Terminal
//	ping                  Pulse
//	error                 Fault
//	anything else         Opaque
//
// The type is read from the data; the event line may be missing or wrong. Sources: WIRE 1.3, 2, 3.2; the Messages
// streaming documentation (docs.anthropic.com/en/docs/build-with-claude/streaming); the recordings under corpus/.
package anthropic
