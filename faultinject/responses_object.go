package faultinject

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// responseMembers are the members of a response that repeat the request, with
// what stands there if the request leaves them out.
var responseMembers = []struct{ name, otherwise string }{
	{"background", "false"}, {"instructions", "null"}, {"max_output_tokens", "null"}, {"max_tool_calls", "null"},
	{"parallel_tool_calls", "true"}, {"previous_response_id", "null"}, {"prompt_cache_key", "null"},
	{"reasoning", `{"effort":null,"summary":null}`}, {"safety_identifier", "null"}, {"service_tier", `"auto"`}, {"store", "true"},
	{"temperature", "1.0"}, {"text", `{"format":{"type":"text"},"verbosity":"medium"}`}, {"tool_choice", `"auto"`}, {"tools", "[]"},
	{"top_logprobs", "0"}, {"top_p", "1.0"}, {"truncation", `"disabled"`}, {"user", "null"}, {"metadata", "{}"},
}

// responseObject is the response as created, in_progress and the terminal
// event carry it. more is what its status brings with it.
func responseObject(o Options, status string, items []responsesItem, more string) string {
	asked := o.request()
	var b strings.Builder
	fmt.Fprintf(&b, `{"id":%s,"object":"response","created_at":%d,"status":"%s","model":%s`, quote(o.ID), o.Created, status, quote(o.Model))
	for _, m := range responseMembers {
		val := m.otherwise
		if v := asked[m.name]; len(v) > 0 && string(v) != "null" {
			val = string(v)
		}
		fmt.Fprintf(&b, `,"%s":%s`, m.name, val)
	}
	output := make([]string, len(items))
	for i, it := range items {
		output[i] = it.whole(o)
	}
	b.WriteString(`,"output":[` + strings.Join(output, ",") + `]`)
	if more == "" {
		more = `,"completed_at":null,"error":null,"incomplete_details":null,"usage":null`
	}
	return b.String() + more + "}"
}

// responsesFinish is the status an answer ends with, and the members that go
// with it.
func responsesFinish(a Answer, o Options) (status, more string) {
	usage := `,"usage":` + responsesUsage(a, o)
	reason := ""
	switch {
	case a.Finish == FinishLength:
		reason = "max_output_tokens"
	case a.Finish == FinishRefusal && !slices.ContainsFunc(a.Blocks, func(k Block) bool { return k.Kind == RefusalBlock }):
		reason = "content_filter"
	default: // a refusal that was said is an answer
		return "completed", fmt.Sprintf(`,"completed_at":%d,"error":null,"incomplete_details":null`, o.Created+1) + usage
	}
	return "incomplete", `,"completed_at":null,"error":null,"incomplete_details":{"reason":"` + reason + `"}` + usage
}

func responsesUsage(a Answer, o Options) string {
	u := a.usage(o)
	return fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}`,
		u.In, u.CacheRead, u.Out, u.Reasoning, u.In+u.Out)
}

// responsesWhole is the answer to a request without a stream: the end of it,
// or, in the background, its beginning.
func responsesWhole(a Answer, o Options) []byte {
	if o.background() {
		return []byte(responseObject(o, "queued", nil, ""))
	}
	return responsesFinal(a, o)
}

// responsesFinal is the response once it is over.
func responsesFinal(a Answer, o Options) []byte {
	status, more := responsesFinish(a, o)
	return []byte(responseObject(o, status, responsesItems(a, o), more))
}

// responsesFailed is the response that an error ended. What was said by then
// is not in it, as recorded.
func responsesFailed(o Options, code, message string) string {
	return responseObject(o, "failed", nil, `,"completed_at":null,"error":{"code":`+quote(code)+`,"message":`+quote(message)+`},"incomplete_details":null,"usage":null`)
}

// request returns the members of the request that is answered.
func (o Options) request() map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(o.Request, &m) != nil {
		return nil
	}
	return m
}

func (o Options) background() bool { return string(o.request()["background"]) == "true" }

// summarises reports whether reasoning is shown. Without a request it is: a
// test that renders it wants to see it.
func (o Options) summarises() bool {
	if o.Request == nil {
		return true
	}
	var r struct{ Summary string }
	return json.Unmarshal(o.request()["reasoning"], &r) == nil && r.Summary != ""
}

// sealed reports whether encrypted reasoning goes out.
func (o Options) sealed() bool {
	if o.Request == nil {
		return true
	}
	var include []string
	return json.Unmarshal(o.request()["include"], &include) == nil && slices.Contains(include, "reasoning.encrypted_content")
}
