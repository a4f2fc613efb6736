package faultinject

import (
	"net/http"
	"strings"
)

// A speaker plays the provider of one dialect. A new dialect is a Dialect, a
// speaker, and a row in speakers: the core asks, it does not name dialects.
type speaker interface {
	dialect() Dialect
	traits() traits

	// serves reports whether a request, its path without the query, is for the
	// endpoint whose answers this speaker gives.
	serves(method, path string) bool
	// prompt understands a request. It serves requests that a target will judge
	// too, so it must stand any body; it sets Model and Dialect whenever it can.
	prompt(s *Server, in received) (Prompt, error)
	// check is the strictness: it refuses what the provider refuses, in its words.
	check(s *Server, in received) *Refusal
	// prefills reports whether p's trailing assistant turn is continued.
	prefills(h Host, p Prompt) bool

	events(a Answer, o Options) []Event
	whole(a Answer, o Options) []byte

	// refuse renders a refusal as the provider's JSON body.
	refuse(r *Refusal, requestID string) []byte
	// failure puts a kind of error in the dialect's words.
	failure(k errorKind) *Refusal
	// inBand renders an error inside the stream. chunk is the event it follows
	// or replaces, nil if it comes before or after all events.
	inBand(f InBand, k errorKind, p Position, chunk []byte) []byte
}

// traits are facts of a dialect that faults and the core need.
type traits struct {
	responseID string // how the ids of responses begin
	deltaEvent string // the SSE event name of a text delta, empty if events are unnamed
	// oneEnd says that the event which finishes the answer is also the terminal
	// event: KindEnd then answers to the address "finish" as well.
	oneEnd bool
	// framing is how the events stand in the body; nil: as the variant says.
	framing func(Options) Framing
	// tune adds to the options of a response what only this dialect's rendering
	// needs to know of the request; nil if that is nothing.
	tune func(o *Options, p Prompt, t task)
	// ping renders the dialect's own sign of life, the n-th of a row that
	// follows chunk; nil if a comment is all it has.
	ping func(chunk []byte, n int) []byte
	// errorHead are the headers that say of an error what its body does not; nil
	// if the body says all.
	errorHead func(r *Refusal) http.Header
}

// speakers is the table of dialects. The first one also speaks where no
// dialect is known.
var speakers = []speaker{chatSpeaker{}, messagesSpeaker{}, responsesSpeaker{}, geminiSpeaker{}, interactionsSpeaker{}, completionsSpeaker{}, converseSpeaker{}, invokeSpeaker{}}

// Dialects lists the dialects the provider speaks.
func Dialects() []Dialect {
	out := make([]Dialect, len(speakers))
	for i, sp := range speakers {
		out[i] = sp.dialect()
	}
	return out
}

// speaker returns the player of d.
func (d Dialect) speaker() speaker {
	for _, sp := range speakers {
		if sp.dialect() == d {
			return sp
		}
	}
	return speakers[0]
}

// speakerFor returns who answers a request, nil if it is for no message
// endpoint.
func speakerFor(in received) speaker {
	path, _, _ := strings.Cut(in.path, "?")
	for _, sp := range speakers {
		if sp.serves(in.method, path) {
			return sp
		}
	}
	return nil
}
