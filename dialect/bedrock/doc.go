// Package bedrock is AWS Bedrock's runtime, which streams frames of package eventstream and not text events. It speaks
// two dialects, told apart by the path (WIRE 1.6):
//
//	POST /model/{id}/converse-stream               Converse: Bedrock's own wire, for every model
//	POST /model/{id}/invoke-with-response-stream   Invoke: the model's own wire in frames; Anthropic's only
//	POST /model/{id}/converse, …/invoke            the same without a stream
//
// Law: a frame that nobody needs to change keeps its bytes; one that is changed keeps its headers and every member that
// was not meant. The package decides nothing and never closes, completes or signs what the provider left unfinished: an
// unfinished tool call is never rendered runnable, unfinished reasoning is closed only under a mark that a later request
// is cleaned of.
//
//	frame of Converse     deltas
//	messageStart          Head
//	contentBlockStart     Open; nothing where it does not say of what (the first delta does)
//	contentBlockDelta     Open if the block has none, then Text (text, toolUse.input, reasoningContent.text), Sign
//	                      (signature), Extra (citation, toolResult, image, unknown)
//	contentBlockStop      Close
//	messageStop           Finish
//	metadata              Count (usage), Terminal: it is the last frame, and optional
//	an exception          Fault
//	anything else         Opaque
//
// Invoke is package anthropic inside of `chunk` frames: its events are taken out, read and rendered there, and put back.
//
// A request that is signed (SigV4) cannot be asked for again by anybody but its signer; package proxy relays such
// requests untouched. Sources: WIRE 1.6, 2; the Bedrock API reference (docs.aws.amazon.com/bedrock/latest/APIReference);
// the recordings under corpus/bedrock.
package bedrock
