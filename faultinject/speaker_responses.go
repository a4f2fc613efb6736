package faultinject

import (
	"fmt"
	"net/http"
	"strings"
)

// responsesSpeaker plays OpenAI Responses.
type responsesSpeaker struct{}

func (responsesSpeaker) dialect() Dialect { return Responses }

func (responsesSpeaker) traits() traits {
	return traits{responseID: responsesPrefix, deltaEvent: "response.output_text.delta", oneEnd: true, ping: keepalive}
}

// keepalive is what the provider sends in long silent runs; each one takes a
// sequence number (WIRE 1.2).
func keepalive(chunk []byte, n int) []byte {
	seq, ok := sequenceOf(chunk)
	if ok {
		seq++
	}
	return frame(Variant{}, "keepalive", fmt.Sprintf(`{"type":"keepalive","sequence_number":%d}`, seq+n))
}

func (responsesSpeaker) serves(method, path string) bool {
	return method == http.MethodPost && strings.HasSuffix(path, "/responses")
}

func (responsesSpeaker) prompt(s *Server, in received) (Prompt, error) {
	return responsesPrompt(s.shelf, in.body)
}

func (responsesSpeaker) check(s *Server, in received) *Refusal {
	return checkResponses(s.shelf, in.header, in.body)
}

// prefills: only vLLM goes on with a trailing message, one in progress (WIRE
// 2.1). Everywhere else it is a turn that is over, and a fresh one starts.
func (responsesSpeaker) prefills(h Host, p Prompt) bool {
	n := len(p.Turns)
	return h == VLLM && n > 0 && p.Turns[n-1].Prefix
}

func (responsesSpeaker) events(a Answer, o Options) []Event { return responsesEvents(a, o) }
func (responsesSpeaker) whole(a Answer, o Options) []byte {
	return responsesWhole(a, o.withDefaults(responsesPrefix))
}
func (responsesSpeaker) refuse(r *Refusal, _ string) []byte { return openAIError(r) }
func (responsesSpeaker) failure(k errorKind) *Refusal       { return openAIFailure(k) }

// inBand is the nested error event, then response.failed, as recorded
// (WIRE 1.2).
func (responsesSpeaker) inBand(f InBand, k errorKind, p Position, chunk []byte) []byte {
	seq, ok := sequenceOf(chunk)
	switch {
	case ok && f.At.Side != Before:
		seq++
	case p.Phase == PhaseDone:
		seq = p.Event
	}
	code := k.code
	if code == "" {
		code = k.chat
	}
	members := fmt.Sprintf(`"type":%s,"code":%s,"message":%s,"param":null`, quote(k.chat), quote(code), quote(k.text))
	event := func(name, members string) []byte {
		seq++
		return frame(p.Options.Variant, name, fmt.Sprintf(`{"type":"%s","sequence_number":%d,%s}`, name, seq-1, members))
	}
	failed := func() []byte {
		o := p.Options
		o.ID, o.Model = p.ID, p.Model
		return event("response.failed", `"response":`+responsesFailed(o.withDefaults(responsesPrefix), code, k.text))
	}
	switch f.Shape {
	case "flat": // as the reference shows it
		return append(event("error", fmt.Sprintf(`"code":%s,"message":%s,"param":null`, quote(code), quote(k.text))), failed()...)
	case "alone": // the stream ends with the error
		return event("error", `"error":{`+members+`}`)
	case "failed": // without the error before it
		return failed()
	}
	return append(event("error", `"error":{`+members+`}`), failed()...)
}
