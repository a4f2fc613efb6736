package faultinject

import (
	"encoding/json"
	"net/http"
	"strings"
)

// completionsSpeaker plays the legacy completions of OpenAI and of the servers
// that copy them.
type completionsSpeaker struct{}

func (completionsSpeaker) dialect() Dialect { return Completions }
func (completionsSpeaker) traits() traits   { return traits{responseID: completionPrefix} }

func (completionsSpeaker) serves(method, path string) bool {
	return method == http.MethodPost && strings.HasSuffix(path, "/completions") && !strings.HasSuffix(path, "/chat/completions")
}

// prompt takes a prompt that goes on from another as that one, and a partial
// answer.
func (completionsSpeaker) prompt(s *Server, in received) (Prompt, error) {
	p := Prompt{Dialect: Completions}
	var r completionRequest
	if err := json.Unmarshal(in.body, &r); err != nil {
		return p, err
	}
	p.Model, p.Stream, p.MaxTokens, p.N = r.Model, r.Stream, r.MaxTokens, r.N
	p.IncludeUsage = r.StreamOpts != nil && r.StreamOpts.IncludeUsage
	if len(r.Stop) > 0 {
		var one string
		if json.Unmarshal(r.Stop, &one) == nil {
			p.Stops = []string{one}
		} else if err := json.Unmarshal(r.Stop, &p.Stops); err != nil {
			return p, err
		}
	}
	whole, _ := r.promptText()
	p.Turns = []Turn{{Role: "user", Text: whole}}
	best := ""
	for _, known := range s.prompts.beginnings(whole) {
		base := p
		base.Turns = []Turn{{Role: "user", Text: known}}
		key, _ := turnKey(in.header.Get(HeaderTurn), base)
		if len(known) >= len(best) && s.turns.begins(key, whole[len(known):]) {
			best = known
			p.Turns = append(base.Turns, Turn{Role: "assistant", Text: whole[len(known):]})
		}
	}
	return p, nil
}

func (completionsSpeaker) check(s *Server, in received) *Refusal {
	if r := checkKey(in.header); r != nil {
		return r
	}
	var r completionRequest
	if err := json.Unmarshal(in.body, &r); err != nil {
		return invalid("We could not parse the JSON body of your request: %v", err)
	}
	no := checkCompletion(r)
	if no == nil {
		whole, _ := r.promptText()
		s.prompts.note(whole)
	}
	return no
}

func (completionsSpeaker) prefills(Host, Prompt) bool         { return true }
func (completionsSpeaker) events(a Answer, o Options) []Event { return completionsEvents(a, o) }
func (completionsSpeaker) whole(a Answer, o Options) []byte   { return completionsWhole(a, o) }
func (completionsSpeaker) refuse(r *Refusal, _ string) []byte { return openAIError(r) }
func (completionsSpeaker) failure(k errorKind) *Refusal       { return openAIFailure(k) }

func (completionsSpeaker) inBand(f InBand, k errorKind, p Position, chunk []byte) []byte {
	return chatSpeaker{}.inBand(f, k, p, chunk)
}
