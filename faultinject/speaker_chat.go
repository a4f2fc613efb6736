package faultinject

import (
	"fmt"
	"net/http"
	"strings"
)

// chatSpeaker plays OpenAI Chat Completions and the hosts that copy it.
type chatSpeaker struct{}

func (chatSpeaker) dialect() Dialect { return Chat }
func (chatSpeaker) traits() traits   { return traits{responseID: "chatcmpl-"} }

func (chatSpeaker) serves(method, path string) bool {
	return method == http.MethodPost && strings.HasSuffix(path, "/chat/completions")
}

func (chatSpeaker) prompt(s *Server, in received) (Prompt, error) {
	p, err := promptOf(Chat, in.body)
	return relabel(s.cfg.Host, p), err
}

func (chatSpeaker) check(s *Server, in received) *Refusal {
	req, r := decodeRequest(in.body)
	if r != nil {
		return r
	}
	path, _, _ := strings.Cut(in.path, "?")
	return checkChat(s.cfg.Host, path, in.header, req)
}

func (chatSpeaker) prefills(h Host, p Prompt) bool     { return chatPrefills(h, p) }
func (chatSpeaker) events(a Answer, o Options) []Event { return chatEvents(a, o) }
func (chatSpeaker) whole(a Answer, o Options) []byte {
	return chatWhole(a, o.withDefaults("chatcmpl-"))
}
func (chatSpeaker) refuse(r *Refusal, _ string) []byte { return openAIError(r) }
func (chatSpeaker) failure(k errorKind) *Refusal       { return openAIFailure(k) }
func (chatSpeaker) inBand(f InBand, k errorKind, p Position, _ []byte) []byte {
	object := fmt.Sprintf(`{"message":%s,"type":%s,"param":null,"code":%s}`, quote(k.text), quote(k.chat), orNull(k.code))
	head := fmt.Sprintf(`{"id":%s,"object":"chat.completion.chunk","created":1770853433,"model":%s,`, quote(p.ID), quote(p.Model))
	finish := func(reason, native, more string) []byte {
		return frame(Variant{}, "", fmt.Sprintf(`%s"choices":[{"index":0,"delta":{},"finish_reason":%s%s}]%s}`, head, reason, native, more))
	}
	switch f.Shape {
	case "named": // some servers name the event
		return frame(Variant{}, "error", `{"error":`+object+`}`)
	case "done": // vLLM, SGLang: then [DONE] in a 200 stream
		return append(frame(Variant{}, "", `{"error":`+object+`}`), frame(Variant{}, "", "[DONE]")...)
	case "chunk": // OpenRouter: an ordinary chunk with a top-level error, then [DONE]
		return append(finish("null", `,"native_finish_reason":null`, fmt.Sprintf(`,"error":{"code":%d,"message":%s}`, k.status, quote(k.text))), frame(Variant{}, "", "[DONE]")...)
	case "finish": // a failure behind a finish (FIELD-REPORTS E3)
		return append(finish(`"error"`, `,"native_finish_reason":"network_error"`, ""), frame(Variant{}, "", "[DONE]")...)
	case "resource": // DeepSeek
		return append(finish(`"insufficient_system_resource"`, "", ""), frame(Variant{}, "", "[DONE]")...)
	case "groq": // Groq: named event, the status inside
		return frame(Variant{}, "error", fmt.Sprintf(`{"error":{"message":%s,"type":%s,"code":%s,"status_code":%d}}`, quote(k.text), quote(k.chat), orNull(k.code), k.status))
	default:
		return frame(Variant{}, "", `{"error":`+object+`}`)
	}
}

// openAIError is OpenAI's error body, of every endpoint.
func openAIError(r *Refusal) []byte {
	return fmt.Appendf(nil, `{"error":{"message":%s,"type":%s,"param":%s,"code":%s}}`, quote(r.Message), quote(r.Type), orNull(r.Param), orNull(r.Code))
}

func openAIFailure(k errorKind) *Refusal {
	return &Refusal{Status: k.status, Type: k.chat, Code: k.code, Message: k.text}
}
