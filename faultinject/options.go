package faultinject

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Options choose among the wire variants real servers send. The zero value is
// what the first-party provider sends.
type Options struct {
	Model   string // default "mock-model"
	ID      string // response id; default derived from the seed
	Created int64  // unix seconds, OpenAI only
	Seed    uint64 // of the split into deltas

	IncludeUsage bool   // Chat: stream_options.include_usage
	N            int    // Chat: number of choices, 0 is 1
	Logprobs     bool   // Chat, Responses
	Request      []byte // Responses: the request's body, parts of which a response repeats
	Variant      Variant

	Array      bool   // Gemini: one JSON array in place of events
	Checkpoint string // Gemini: the key of the turn, for continuation tokens; empty issues none
	Said       int    // Gemini: bytes of the turn's text that earlier responses said, with Checkpoint
	StreamArgs bool   // Gemini: the arguments of calls in pieces
	Kept       bool   // Interactions: the provider keeps it, so that its events have ids
}

// A Variant collects the deviations of other servers (WIRE 1.1's table and
// FIELD-REPORTS C). Every one of them is legal or at least common.
type Variant struct {
	CRLF        bool // lines end in CRLF (FIELD-REPORTS C3)
	NoSpace     bool // "data:{" (C4)
	MultiData   bool // the payload over several data lines (C5)
	BOM         bool // a byte order mark before the first event (C8)
	NoDone      bool // Chat: no [DONE] (A2)
	MergeFinish bool // Chat: finish_reason on the last content chunk (A2)
	UsageFinish bool // Chat: usage on the finish chunk, as DeepSeek and Mistral do
	RoleAlways  bool // Chat: the role in every delta, as OpenRouter does (D16)
	Reasoning   bool // Chat: field "reasoning" in place of "reasoning_content"
	WholeCalls  bool // Chat: a whole tool call in one delta, as Mistral and xAI do
	Obfuscation bool // Chat, Responses: OpenAI's padding field
	Comments    bool // a comment before every event, as OpenRouter does
	NoPing      bool // Messages: leave out the ping after the first block start
	ASCII       bool // \u escapes for everything outside ASCII
	SplitPairs  bool // ASCII, and a surrogate pair split over two deltas (C6)

	ReasoningText bool // Responses: reasoning as it is, in place of summaries, as open-weight models do
	RotateIDs     bool // Responses: another id of the same item in every event, as GitHub Copilot does

	LF          bool // Gemini: lines end in LF, as gateways in front of it do
	Checkpoints bool // Gemini: continuation tokens, whatever the model
	Pauses      bool // Gemini: the stream ends with CONTINUATION at every third checkpoint
}

// variants names the fields of Variant for scripts and headers.
func variants(v *Variant) map[string]*bool {
	return map[string]*bool{
		"crlf": &v.CRLF, "no-space": &v.NoSpace, "multi-data": &v.MultiData, "bom": &v.BOM,
		"no-done": &v.NoDone, "merge-finish": &v.MergeFinish, "usage-on-finish": &v.UsageFinish,
		"role-always": &v.RoleAlways, "reasoning": &v.Reasoning, "whole-calls": &v.WholeCalls,
		"obfuscation": &v.Obfuscation, "comments": &v.Comments, "no-ping": &v.NoPing,
		"ascii": &v.ASCII, "split-pairs": &v.SplitPairs,
		"reasoning-text": &v.ReasoningText, "rotate-ids": &v.RotateIDs,
		"lf": &v.LF, "checkpoints": &v.Checkpoints, "pauses": &v.Pauses,
	}
}

// VariantNames returns the names a script may use.
func VariantNames() []string { return slices.Sorted(maps.Keys(variants(new(Variant)))) }

// Set switches the named variant on.
func (v *Variant) Set(name string) error {
	field, ok := variants(v)[name]
	if !ok {
		return fmt.Errorf("unknown variant %q: use one of %s", name, strings.Join(VariantNames(), ", "))
	}
	*field = true
	return nil
}

func (o Options) withDefaults(prefix string) Options {
	if o.Model == "" {
		o.Model = "mock-model"
	}
	if o.ID == "" {
		o.ID = prefix + label(o.Seed, o.Model)
	}
	if o.Created == 0 {
		o.Created = 1770853433
	}
	if o.N < 1 {
		o.N = 1
	}
	return o
}

// label makes a provider-like identifier out of its parts.
func label(seed uint64, parts ...string) string {
	const alphabet = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	h := hash64(append(parts, fmt.Sprint(seed))...)
	var b [22]byte
	for i := range b {
		b[i] = alphabet[h%uint64(len(alphabet))]
		h = h*6364136223846793005 + 1442695040888963407
		h ^= h >> 29
	}
	return string(b[:])
}

// callID returns the id of the n-th tool call of a response, with the prefix
// its dialect gives such ids.
func callID(prefix string, o Options, n int) string {
	return prefix + label(uint64(n), o.ID, "call")
}
