package faultinject

import (
	"fmt"
	"net/http"
	"strings"
)

// messagesSpeaker plays Anthropic Messages.
type messagesSpeaker struct{}

func (messagesSpeaker) dialect() Dialect { return Messages }

func (messagesSpeaker) traits() traits {
	return traits{responseID: "msg_01", deltaEvent: "content_block_delta", ping: func([]byte, int) []byte {
		return []byte("event: ping\ndata: {\"type\": \"ping\"}\n\n")
	}}
}

func (messagesSpeaker) serves(method, path string) bool {
	return method == http.MethodPost && strings.HasSuffix(path, "/messages")
}

func (messagesSpeaker) prompt(_ *Server, in received) (Prompt, error) {
	return promptOf(Messages, in.body)
}

func (messagesSpeaker) check(_ *Server, in received) *Refusal {
	req, r := decodeRequest(in.body)
	if r != nil {
		return r
	}
	return checkMessages(in.header, req)
}

func (messagesSpeaker) prefills(Host, Prompt) bool         { return true }
func (messagesSpeaker) events(a Answer, o Options) []Event { return messagesEvents(a, o) }
func (messagesSpeaker) whole(a Answer, o Options) []byte {
	return messagesWhole(a, o.withDefaults("msg_01"))
}

func (messagesSpeaker) refuse(r *Refusal, requestID string) []byte {
	return fmt.Appendf(nil, `{"type":"error","error":{"type":%s,"message":%s},"request_id":%s}`, quote(r.Type), quote(r.Message), quote(requestID))
}

func (messagesSpeaker) failure(k errorKind) *Refusal {
	return &Refusal{Status: k.status, Type: k.messages, Message: k.text}
}

func (messagesSpeaker) inBand(_ InBand, k errorKind, p Position, _ []byte) []byte {
	return frame(Variant{}, "error", fmt.Sprintf(`{"type":"error","error":{"type":%s,"message":%s},"request_id":%s}`, quote(k.messages), quote(k.text), quote("req_"+p.ID)))
}
