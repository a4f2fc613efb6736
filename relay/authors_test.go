package relay_test

import (
	"bytes"
	"fmt"

	"github.com/unbroken-llm/unbroken/relay/relaytest"
	"github.com/unbroken-llm/unbroken/turn"
)

// author is a dialect that writes a structured document, or any text.
type author struct {
	family
	request string
	// begin opens the text, end closes it behind what this attempt said.
	begin func(id string) string
	text  func(id, s string) string
	end   func(id, said string) string
	main  turn.Manner // the one that is cut at every byte
}

var authors = []author{
	{
		family: chat, main: turn.Prefill,
		request: `{"model":"m","stream":true,"response_format":{"type":"json_schema","json_schema":{"name":"s","strict":true,"schema":` + catalogueSchema + `}},"messages":[{"role":"user","content":"go"}]}`,
		begin:   role, text: oc,
		end: func(id, _ string) string { return fr(id, "stop") + done },
	},
	{
		family: messages, main: turn.Prefill,
		request: `{"model":"m","max_tokens":100000,"stream":true,"output_config":{"format":{"type":"json_schema","schema":` + catalogueSchema + `}},"messages":[{"role":"user","content":"go"}]}`,
		begin:   messagesWire.begin, text: messagesWire.text,
		end: func(id, _ string) string { return messagesWire.end(id) },
	},
	{
		family: responses, main: turn.Asked,
		request: `{"model":"m","stream":true,"text":{"format":{"type":"json_schema","name":"s","strict":true,"schema":` + catalogueSchema + `}},"input":"go"}`,
		begin:   beginResponse, text: textResponse, end: endResponse,
	},
	{
		family: generate, main: turn.Prefill,
		request: `{"contents":[{"role":"user","parts":[{"text":"go"}]}],"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":` + catalogueSchema + `}}`,
		begin:   func(id string) string { return candidate(id, `{"text":""}`, "") },
		text:    func(id, s string) string { return candidate(id, `{"text":`+quoted(s)+`}`, "") },
		end:     func(id, _ string) string { return candidate(id, `{"text":""}`, `,"finishReason":"STOP"`) },
	},
	{
		family: legacy, main: turn.Prefill,
		request: `{"model":"m","stream":true,"guided_json":` + catalogueSchema + `,"prompt":"go"}`,
		begin:   func(id string) string { return completion(id, "", "null") },
		text:    func(id, s string) string { return completion(id, s, "null") },
		end:     func(id, _ string) string { return completion(id, "", `"stop"`) + done },
	},
	{
		family: generateArray, main: turn.Prefill,
		request: `{"contents":[{"role":"user","parts":[{"text":"go"}]}],"generationConfig":{"responseMimeType":"application/json","responseJsonSchema":` + catalogueSchema + `}}`,
		begin:   func(id string) string { return "[" + element(id, `{"text":""}`, "") },
		text:    func(id, s string) string { return "\n,\r\n" + element(id, `{"text":`+quoted(s)+`}`, "") },
		end: func(id, _ string) string {
			return "\n,\r\n" + element(id, `{"text":""}`, `,"finishReason":"STOP"`) + "\n]\n"
		},
	},
	{
		family: interact, main: turn.Asked,
		request: `{"model":"m","stream":true,"store":false,"response_format":{"type":"text","mime_type":"application/json","schema":` + catalogueSchema + `},"input":"go"}`,
		begin: func(id string) string {
			return step("interaction.created", `"interaction":{"id":"`+id+`","status":"in_progress","object":"interaction","model":"m"}`) +
				step("step.start", `"index":0,"step":{"type":"model_output"}`)
		},
		text: func(_, s string) string {
			return step("step.delta", `"index":0,"delta":{"text":`+quoted(s)+`,"type":"text"}`)
		},
		end: func(id, _ string) string { return step("step.stop", `"index":0`) + endInteraction(id) },
	},
	{
		family: converse, main: turn.Prefill,
		request: `{"messages":[{"role":"user","content":[{"text":"go"}]}],"outputConfig":{"textFormat":{"type":"json_schema","structure":{"jsonSchema":{"schema":` + quoted(catalogueSchema) + `}}}}}`,
		begin:   func(string) string { return frameOf("messageStart", `{"role":"assistant"}`) },
		text: func(_, s string) string {
			return frameOf("contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":`+quoted(s)+`}}`)
		},
		end: func(string, string) string {
			return frameOf("contentBlockStop", `{"contentBlockIndex":0}`) + endConverse
		},
	},
	{
		family: invoke, main: turn.Prefill,
		request: `{"anthropic_version":"bedrock-2023-05-31","max_tokens":100000,"output_config":{"format":{"type":"json_schema","schema":` + catalogueSchema + `}},"messages":[{"role":"user","content":"go"}]}`,
		begin:   func(id string) string { return inChunks(messagesWire.begin(id)) },
		text:    func(id, s string) string { return inChunks(messagesWire.text(id, s)) },
		end:     func(id, _ string) string { return inChunks(messagesWire.end(id)) },
	},
}

// step is an event of Interactions.
func step(typ, members string) string {
	return event(typ, "{"+members+`,"event_type":"`+typ+`"}`)
}

func endInteraction(id string) string {
	return step("interaction.completed", `"interaction":{"id":"`+id+`","status":"completed","object":"interaction","model":"m","usage":{"total_tokens":14,"total_input_tokens":10,"total_output_tokens":4}}`) + interact.marker
}

var endConverse = frameOf("messageStop", `{"stopReason":"end_turn"}`) + frameOf("metadata", `{"metrics":{"latencyMs":7},"usage":{"inputTokens":10,"outputTokens":4,"totalTokens":14}}`)

// inChunks puts the data of events into frames.
func inChunks(stream string) string {
	var out []byte
	for _, u := range relaytest.Units([]byte(stream)) {
		_, data, _ := bytes.Cut(u, []byte("data: "))
		out = append(out, relaytest.Chunk(bytes.TrimSpace(data))...)
	}
	return string(out)
}

func candidate(id, part, more string) string { return "data: " + element(id, part, more) + "\n\n" }

func element(id, part, more string) string {
	return `{"candidates":[{"content":{"parts":[` + part + `],"role":"model"}` + more + `,"index":0}],"modelVersion":"m","responseId":"` + id + `"}`
}

func completion(id, s, finish string) string {
	return `data: {"id":"` + id + `","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":` + quoted(s) + `,"logprobs":null,"finish_reason":` + finish + "}]}\n\n"
}

// The numbers of a response's events: those before its text, one per delta, and those
// behind. Two deltas at most are sent.
func responseEvent(n int, typ, members string) string {
	return event(typ, fmt.Sprintf(`{"type":%q,"sequence_number":%d,%s}`, typ, n, members))
}

func responseObject(id, status, output string) string {
	return fmt.Sprintf(`"response":{"id":%q,"object":"response","created_at":1,"status":%q,"model":"m","output":[%s],"usage":null,"error":null,"incomplete_details":null}`, id, status, output)
}

func beginResponse(id string) string {
	return responseEvent(0, "response.created", responseObject(id, "in_progress", "")) +
		responseEvent(1, "response.in_progress", responseObject(id, "in_progress", "")) +
		responseEvent(2, "response.output_item.added", `"output_index":0,"item":{"id":"msg_`+id+`","type":"message","status":"in_progress","role":"assistant","content":[]}`) +
		responseEvent(3, "response.content_part.added", `"item_id":"msg_`+id+`","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}`)
}

func textResponse(id, s string) string {
	return responseEvent(4, "response.output_text.delta", `"item_id":"msg_`+id+`","output_index":0,"content_index":0,"delta":`+quoted(s))
}

func endResponse(id, said string) string {
	at := `"item_id":"msg_` + id + `","output_index":0,"content_index":0,`
	part := `{"type":"output_text","annotations":[],"text":` + quoted(said) + `}`
	item := `{"id":"msg_` + id + `","type":"message","status":"completed","role":"assistant","content":[` + part + `]}`
	return responseEvent(6, "response.output_text.done", at+`"text":`+quoted(said)) +
		responseEvent(7, "response.content_part.done", at+`"part":`+part) +
		responseEvent(8, "response.output_item.done", `"output_index":0,"item":`+item) +
		responseEvent(9, "response.completed", responseObject(id, "completed", item))
}
