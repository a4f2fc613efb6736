package faultinject

import (
	"fmt"
	"net/http"
	"strings"
)

// interactionsSpeaker plays Gemini Interactions.
type interactionsSpeaker struct{}

func (interactionsSpeaker) dialect() Dialect { return Interactions }

func (interactionsSpeaker) traits() traits {
	return traits{responseID: interactionPrefix, deltaEvent: "step.delta", tune: func(o *Options, p Prompt, _ task) { o.Kept = p.Stores }}
}

func (interactionsSpeaker) serves(method, path string) bool {
	return method == http.MethodPost && strings.HasSuffix(path, "/interactions")
}

// prompt puts the conversation so far in front of what the request says.
func (interactionsSpeaker) prompt(s *Server, in received) (Prompt, error) {
	req, r := decodeInteraction(in.body)
	if r != nil {
		return Prompt{Dialect: Interactions, Model: req.Model}, r
	}
	var before []Turn
	if kept, ok := s.shelf.get(req.Previous); ok {
		before = kept.turns
	}
	return readInteraction(req, before), nil
}

func (interactionsSpeaker) check(s *Server, in received) *Refusal {
	if r := checkGoogleKey(in.header, in.path); r != nil {
		return r
	}
	req, r := decodeInteraction(in.body)
	if r != nil {
		return r
	}
	var open []Block
	if req.Previous != "" {
		kept, ok := s.shelf.get(req.Previous)
		if !ok {
			return noInteraction(req.Previous)
		}
		if n := len(kept.turns); n > 0 {
			open = kept.turns[n-1].Calls
		}
	}
	return checkInteraction(req, open)
}

func noInteraction(id string) *Refusal {
	return &Refusal{Status: 404, Type: "not_found", Message: fmt.Sprintf("Interaction '%s' not found.", id)}
}

func (interactionsSpeaker) prefills(_ Host, p Prompt) bool     { return geminiPrefills(modelName(p.Model)) }
func (interactionsSpeaker) events(a Answer, o Options) []Event { return interactionsEvents(a, o) }
func (interactionsSpeaker) whole(a Answer, o Options) []byte   { return interactionsWhole(a, o) }

func (interactionsSpeaker) refuse(r *Refusal, _ string) []byte {
	return fmt.Appendf(nil, `{"error":{"message":%s,"code":%s}}`, quote(r.Message), quote(interactionCode(r)))
}

// interactionCode is the word of an error: Google's status in lower case, but
// for a bad request.
func interactionCode(r *Refusal) string {
	switch code := strings.ToLower(r.Type); {
	case code == "invalid_argument", strings.HasSuffix(code, "_error"), code == "":
		if r.Status == 400 || r.Status == 422 {
			return "invalid_request"
		}
		return strings.ToLower(googleStatus(r.Status))
	default:
		return code
	}
}

func (interactionsSpeaker) failure(k errorKind) *Refusal { return googleFailure(k) }

func (interactionsSpeaker) inBand(f InBand, k errorKind, p Position, _ []byte) []byte {
	r := googleFailure(k)
	if f.Shape == "raw" {
		return prettyError(r)
	}
	return p.Framing.event("error", fmt.Sprintf(`{"error":{"message":%s,"code":%s},"event_type":"error"}`, quote(r.Message), quote(interactionCode(r))), false)
}
