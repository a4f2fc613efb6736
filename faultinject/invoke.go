package faultinject

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// InvokeModel of Anthropic's models: Messages in `chunk` frames (WIRE 1.6). Pings
// are not passed on, and the last event says what the invocation took.
func invokeEvents(a Answer, o Options) []Event {
	o = o.withDefaults(invokePrefix)
	o.Variant.NoPing, o.Model = true, invokedModel(o.Model)
	u := a.usage(o)
	n := 0
	return messagesOf(a, o, func(name, payload string) []byte {
		if name == "message_stop" {
			payload = fmt.Sprintf(`{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":%d,"outputTokenCount":%d,"invocationLatency":%d,"firstByteLatency":%d}}`,
				u.In, u.Out, latency(u), latency(u)/2)
		}
		n++
		return chunkFrame(payload, pad(o, n))
	})
}

const invokePrefix = "msg_bdrk_"

func invokeWhole(a Answer, o Options) []byte {
	o = o.withDefaults(invokePrefix)
	o.Model = invokedModel(o.Model)
	return messagesWhole(a, o)
}

var invokedVersion = regexp.MustCompile(`-v\d+(:\d+)?$`)

// invokedModel is what an answer calls the model of an id such as
// us.anthropic.claude-3-sonnet-20240229-v1:0.
func invokedModel(id string) string {
	if _, name, ok := strings.Cut(id, "anthropic."); ok {
		return invokedVersion.ReplaceAllString(name, "")
	}
	return id
}

// invokeFields are the members of a request to one of Anthropic's models (Bedrock
// user guide, "Anthropic Claude Messages API"). Model and stream are not among
// them: they stand in the path.
var invokeFields = map[string]bool{
	"anthropic_version": true, "anthropic_beta": true, "max_tokens": true, "messages": true, "system": true, "stop_sequences": true,
	"temperature": true, "top_p": true, "top_k": true, "tools": true, "tool_choice": true, "thinking": true, "output_config": true,
	"output_format": true, "context_management": true, "metadata": true,
}

// readInvoke reads a body, whose model and stream stand in the path.
func readInvoke(call bedrockCall, body []byte) (wireRequest, *Refusal) {
	w, r := decodeRequest(body)
	w.Model, w.Stream = call.model, call.streams()
	return w, r
}

// checkInvoke refuses what InvokeModel refuses, in its words.
func checkInvoke(h http.Header, call bedrockCall, body []byte) *Refusal {
	if r := checkBearer(h); r != nil {
		return r
	}
	if r := checkModelID(call.model); r != nil {
		return r
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return notValid("Malformed input request, please reformat your input and try again.")
	}
	if r := extraneous(members, invokeFields); r != nil {
		return r
	}
	var version string
	_ = json.Unmarshal(members["anthropic_version"], &version)
	switch {
	case version == "":
		return notValid("anthropic_version: Field required")
	case version != "bedrock-2023-05-31":
		return notValid(`Invalid API version: expected "bedrock-2023-05-31"`)
	}
	w, r := readInvoke(call, body)
	if r == nil {
		r = checkConversation(w, false)
	}
	if r != nil {
		return notValid("%s", r.Message)
	}
	return nil
}
