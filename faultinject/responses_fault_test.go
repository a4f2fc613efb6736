package faultinject

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// Every fault of the catalogue, once, on a Responses stream over a socket.
func TestResponsesFaults(t *testing.T) {
	tested := map[string]bool{}
	full := len(responsesEvents(say(shortText), Options{}))
	all := func(events int, hasNot string) func(string) bool {
		return func(body string) bool {
			return strings.Count(body, "\n\n") == events && (hasNot == "" || !strings.Contains(body, hasNot))
		}
	}
	has := func(parts ...string) func(string) bool {
		return func(body string) bool {
			for _, p := range parts {
				_, rest, ok := strings.Cut(body, p)
				if !ok {
					return false
				}
				body = rest
			}
			return true
		}
	}
	anything := func(string) bool { return true }
	for _, tc := range []struct {
		script string
		body   func(string) bool
		end    func(error) bool
		until  string // the client leaves when it has seen this, empty reads to the end
		h2     bool
	}{
		{script: "rst after text 2", body: anything, end: isReset},
		{script: "fin after event 6", body: all(6, "response.completed"), end: isShort},
		{script: "cut inside text 3", body: has(`"sequence_number":5`, `"sequence_number":6`), end: isShort},
		{script: "polite before finish", body: all(full-1, "response.completed"), end: isNil},
		{script: "eof10 after event 6", body: all(6, ""), end: isNil},
		{script: "half with polite inside end", body: all(full-1, ""), end: isNil},
		{script: "stall after open", until: "output_item.added", body: all(3, "")},
		{script: "pings every 1ms after event 5", until: `"sequence_number":7}`, body: has(`"sequence_number":4,`, "event: keepalive\n", `{"type":"keepalive","sequence_number":5}`, `{"type":"keepalive","sequence_number":6}`)},
		{script: "pings every 1ms before event 5", until: `"sequence_number":5}`, body: has(`"sequence_number":3,`, `{"type":"keepalive","sequence_number":4}`)},
		{script: "keepalives every 1ms in text", until: ": keepalive\n\n: keepalive\n\n", body: has("output_text.delta", ": keepalive")},
		{script: "warm every 1ms", until: ": hb\n\n: hb\n\n", body: has("event: response.completed", ": hb")},
		{script: "trickle 9", body: all(full, ""), end: isNil},
		{script: "error overloaded after event 6", body: has(`"sequence_number":5,`, "event: error\ndata: {\"type\":\"error\",\"sequence_number\":6,\"error\":{\"type\":\"server_error\",\"code\":\"overloaded\",\"message\":\"Overloaded\",\"param\":null}}\n\n",
			"event: response.failed", `"sequence_number":7`, `"status":"failed"`, `"error":{"code":"overloaded","message":"Overloaded"}`), end: isNil},
		{script: "error api before event 6", body: has(`"sequence_number":4,`, `{"type":"error","sequence_number":5,`, `"sequence_number":6`), end: isNil},
		{script: "error quota at start", body: has(`{"type":"error","sequence_number":0,`, `"sequence_number":1`), end: isNil},
		{script: "error rate-limit at end", body: has("response.completed", "event: error", "response.failed"), end: isNil},
		{script: "error api as flat after event 4", body: has(`{"type":"error","sequence_number":4,"code":"server_error"`, "response.failed"), end: isNil},
		{script: "error api as alone after event 4", body: all(5, "response.failed"), end: isNil},
		{script: "error api as failed after event 4", body: all(5, "event: error"), end: isNil},
		{script: "reset-stream after event 5", body: all(5, ""), end: isNotNil, h2: true},
		{script: "goaway after event 5", body: anything, end: isNotNil, h2: true},
		{script: "refused", body: all(0, ""), end: isNotNil, h2: true},
		{script: "status 503", body: has(`{"error":{"message":"The server is overloaded`, `"code":"service_unavailable"}}`), end: isNil},
		{script: "garbage after text 2", body: all(full+1, ""), end: isNil},
		{script: "duplicate after text 2", body: all(full+1, ""), end: isNil},
		{script: "no-blank-line", body: func(b string) bool { return strings.HasSuffix(b, "}") }, end: isNil},
		{script: "no-terminal", body: all(full-1, "response.completed"), end: isNil},
		{script: "after-end", until: "ZZ", body: has("response.completed", "response.created", "ZZ")},
		{script: "empty", body: all(0, "data"), end: isNil},
		{script: "only-comments", body: has(": processing"), end: isNil},
		{script: "only-done", body: has("[DONE]"), end: isNil},
		{script: "only-blank", body: has("\n\n\n\n"), end: isNil},
		{script: "html", body: has("<!DOCTYPE html>"), end: isNil},
		{script: "content-type text/plain", body: all(full, ""), end: isNil},
		{script: "gzip", body: func(b string) bool { return strings.HasPrefix(b, "\x1f\x8b") }, end: isNil},
		{script: "br", body: func(b string) bool { return b != "" && !strings.Contains(b, "response.created") }, end: isNil},
		{script: "length; fin after event 6", body: all(6, ""), end: isShort},
	} {
		tested[strings.Fields(strings.Split(tc.script, ";")[0])[0]] = true
		t.Run(tc.script, func(t *testing.T) {
			s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: " + tc.script)})
			path, body := request(Responses)
			var got answerOf
			switch {
			case tc.until != "":
				got.body = readUntil(t, s, Responses, tc.until)
			case tc.h2:
				got = postH2(t, h2client(t), s, path, body)
			default:
				got = post(t, s, path, body)
			}
			if tc.end != nil && !tc.end(got.err) {
				t.Errorf("end: %v", got.err)
			}
			if !tc.body(got.body) {
				t.Errorf("%d events of %d: %s", strings.Count(got.body, "\n\n"), full, got.body)
			}
			list, err := s.WaitLog(patience(t), allEnded(1))
			if err != nil || !list[0].Applied || list[0].Dialect != Responses {
				t.Errorf("%+v %v", list[0], err)
			}
		})
	}
	for _, name := range faultNames() {
		if !tested[name] && name != "bad-crc" { // text has no checksums
			t.Errorf("%s was not tried", name)
		}
	}
}

// The response that failed is the one that began: its id, its time, and what
// was asked.
func TestResponsesFailAsTheyBegan(t *testing.T) {
	s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: error api after text 2; variant crlf")})
	got := post(t, s, responsesPath, strings.Replace(responsesBody("m", msg("user", "Go.")), `"stream"`, `"instructions":"Be brief.","stream"`, 1))
	var heads []map[string]any
	for stream := []byte(got.body); FrameLF.eventLen(stream) > 0; stream = stream[FrameLF.eventLen(stream):] {
		var e struct {
			Type     string
			Response map[string]any
		}
		if err := json.Unmarshal(payloadOf(stream[:FrameLF.eventLen(stream)]), &e); err != nil {
			t.Fatal(err)
		}
		if e.Type == "response.created" || e.Type == "response.failed" {
			heads = append(heads, e.Response)
		}
	}
	if len(heads) != 2 || heads[1]["status"] != "failed" {
		t.Fatalf("%s", got.body)
	}
	differ := []string{"status", "error"}
	for name, was := range heads[0] {
		if is := heads[1][name]; !slices.Contains(differ, name) && mustText(is) != mustText(was) {
			t.Errorf("%s was %v, is %v", name, was, is)
		}
	}
	if heads[0]["instructions"] != "Be brief." {
		t.Errorf("%v", heads[0])
	}
}

func mustText(v any) string { return string(mustJSON(v)) }

// Places named by what happens there, in an answer that has everything.
func TestResponsesPlacesByKind(t *testing.T) {
	for _, tc := range []struct{ place, has, lacks string }{
		{"before tool args", `"name":"get_weather"`, "function_call_arguments.delta"},
		{"before tool", `"output_text"`, "get_weather"},
		{"in thinking", "reasoning_summary_text.delta", "reasoning_summary_text.done"},
		{"after close", `"type":"reasoning"`, `"type":"message"`},
		{"after close 2", `"type":"message"`, "get_weather"},
		{"before finish", `"arguments":"{\"location\"`, "response.completed"},
		{"before end", `"arguments":"{\"location\"`, "response.completed"},
	} {
		t.Run(tc.place, func(t *testing.T) {
			s := start(t, Config{Scenario: "thinking-tool", Script: MustScript("attempt 1: fin " + tc.place)})
			got := post(t, s, responsesPath, strings.Replace(responsesBody("m", msg("user", "Go.")), `"stream"`, `"reasoning":{"summary":"auto"},"stream"`, 1))
			if !isShort(got.err) || !strings.Contains(got.body, tc.has) || strings.Contains(got.body, tc.lacks) {
				t.Errorf("%v\n%s", got.err, got.body)
			}
		})
	}
}
