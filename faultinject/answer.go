package faultinject

import (
	"slices"
	"strings"
)

// A Dialect is the wire language of a request.
type Dialect string

// The dialects the provider speaks.
const (
	Chat     Dialect = "chat"     // OpenAI Chat Completions, WIRE 1.1
	Messages Dialect = "messages" // Anthropic Messages, WIRE 1.3

	Responses Dialect = "responses" // OpenAI Responses, WIRE 1.2

	Gemini       Dialect = "gemini"       // Gemini generateContent, WIRE 1.4
	Interactions Dialect = "interactions" // Gemini Interactions, WIRE 1.5
	Completions  Dialect = "completions"  // legacy completions: a prompt in, text out

	Converse Dialect = "converse" // Bedrock Converse and ConverseStream, WIRE 1.6
	Invoke   Dialect = "invoke"   // Bedrock InvokeModel of Anthropic's models: Messages in frames
)

// A BlockKind says what one block of an answer is.
type BlockKind uint8

// The kinds of block.
const (
	TextBlock BlockKind = iota
	ThinkingBlock
	RedactedBlock // Messages, and a reasoning item without summary in Responses; left out elsewhere
	ToolBlock
	RefusalBlock // delta.refusal in Chat, plain text in Messages
	CustomBlock  // a custom tool call, whose Args are any text: Responses only
	SearchBlock  // a web search the provider makes itself, Text is the query: Responses only
	CodeBlock    // Gemini's: code the provider ran (Args), and what it printed (Text)
)

// A Block is one part of an answer.
type Block struct {
	Kind BlockKind
	Text string // text, thinking, refusal, or the opaque data of a redacted block

	// Signature of a thinking block; empty means Sign(Text).
	Signature string

	// ID of a tool call; empty lets the renderer choose one that is unique to
	// the response, as a provider does.
	ID   string
	Name string
	Args string // a JSON object; empty is a call without arguments

	Cites []Cite // of a text block, Responses only
}

// A Cite is a source of one phrase of a text block. It is left out where the
// block does not contain the phrase.
type Cite struct{ Phrase, Title, URL string }

// A Finish says why an answer ended.
type Finish string

// The ways an answer ends by itself.
const (
	FinishStop     Finish = "stop"          // stop, end_turn
	FinishTool     Finish = "tool"          // tool_calls, tool_use
	FinishLength   Finish = "length"        // length, max_tokens
	FinishSequence Finish = "stop_sequence" // stop, stop_sequence
	FinishRefusal  Finish = "refusal"       // content_filter, refusal
	FinishBlocked  Finish = "blocked"       // Gemini's: the prompt itself was refused
	FinishPaused   Finish = "paused"        // Gemini's: the rest is had for a continuation token
)

// Usage is an answer's token count. Zero fields are estimated by the renderer:
// In is 1 and Out is the number of tokens it emitted.
type Usage struct {
	In, Out   int
	CacheRead int
	Reasoning int
}

// An Answer is everything a model says in one turn, free of any wire format.
type Answer struct {
	Blocks       []Block
	Finish       Finish
	StopSequence string   // the sequence that ended it, with FinishSequence
	Sources      []Source // Gemini's: what a search found
	Usage        Usage
}

// A Source is a web page an answer stands on.
type Source struct{ URI, Title string }

// Text returns the text blocks, joined. It is what a client shows.
func (a Answer) Text() string {
	var b strings.Builder
	for _, k := range a.Blocks {
		if k.Kind == TextBlock {
			b.WriteString(k.Text)
		}
	}
	return b.String()
}

// Calls returns the tool calls in order.
func (a Answer) Calls() []Block {
	var calls []Block
	for _, k := range a.Blocks {
		if k.Kind == ToolBlock || k.Kind == CustomBlock {
			calls = append(calls, k)
		}
	}
	return calls
}

// without returns a without the blocks of the given kinds, which a dialect has
// no form for.
func (a Answer) without(kinds ...BlockKind) Answer {
	a = a.clone()
	a.Blocks = slices.DeleteFunc(a.Blocks, func(k Block) bool { return slices.Contains(kinds, k.Kind) })
	return a
}

// clone copies the blocks, so that the caller may edit them.
func (a Answer) clone() Answer {
	a.Blocks = append([]Block(nil), a.Blocks...)
	return a
}

// prefixText puts s in front of everything the answer says, within its first
// block when that is text.
func (a Answer) prefixText(s string) Answer {
	if s == "" {
		return a
	}
	a = a.clone()
	if len(a.Blocks) > 0 && a.Blocks[0].Kind == TextBlock {
		a.Blocks[0].Text = s + a.Blocks[0].Text
		return a
	}
	a.Blocks = append([]Block{{Kind: TextBlock, Text: s}}, a.Blocks...)
	return a
}
