package faultinject

import (
	"strings"
	"testing"
)

// FIELD-REPORTS E1: every shape of an error inside a 200 stream.
func TestInBandErrors(t *testing.T) {
	for _, tc := range []struct {
		name    string
		dialect Dialect
		script  string
		last    string // what the stream ends with
	}{
		{"messages overloaded", Messages, "error overloaded after text 2", `event: error` + "\n" + `data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}`},
		{"messages api", Messages, "error api after text 2", `{"type":"api_error","message":"Internal server error"}`},
		{"messages timeout", Messages, "error timeout after start", `{"type":"timeout_error"`},
		{"messages rate limit", Messages, "error rate-limit at start", `{"type":"rate_limit_error"`},
		{"messages invalid", Messages, "error invalid after text 2", `{"type":"invalid_request_error"`},
		{"messages billing", Messages, "error billing after text 2", `{"type":"billing_error"`},
		{"chat frame", Chat, "error overloaded after text 2", `data: {"error":{"message":"Overloaded","type":"server_error","param":null,"code":"overloaded"}}` + "\n\n"},
		{"chat named event", Chat, "error api as named after text 2", "event: error\ndata: {\"error\":{"},
		{"chat then done", Chat, "error api as done after text 2", `"code":"server_error"}}` + "\n\ndata: [DONE]\n\n"},
		{"chat chunk with an error", Chat, "error api as chunk after text 2", `"native_finish_reason":null}],"error":{"code":500,"message":"Internal server error"}}` + "\n\ndata: [DONE]\n\n"},
		{"chat finish error", Chat, "error api as finish after text 2", `"finish_reason":"error","native_finish_reason":"network_error"}]}` + "\n\ndata: [DONE]\n\n"},
		{"chat no resources", Chat, "error as resource after text 2", `"finish_reason":"insufficient_system_resource"}]}` + "\n\ndata: [DONE]\n\n"},
		{"groq", Chat, "error invalid as groq after text 2", `"status_code":400}}` + "\n\n"},
		{"chat quota", Chat, "error quota after text 2", `"code":"insufficient_quota"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: " + tc.script)})
			path, body := request(tc.dialect)
			got := post(t, s, path, body)
			if got.err != nil || got.status != 200 {
				t.Fatalf("%d %v", got.status, got.err)
			}
			at := strings.LastIndex(got.body, tc.last)
			if at < 0 || strings.Count(got.body[at:], "\n\n") > 2 {
				t.Errorf("%s", got.body)
			}
			if h := hear(t, tc.dialect, got.body); strings.Contains(shortText, h.text) && h.finish == "end_turn" || h.finish == "stop" {
				t.Errorf("it finished: %q", h.finish)
			}
		})
	}
}

// FIELD-REPORTS G5, G6: an error in place of the stream.
func TestStatuses(t *testing.T) {
	for _, tc := range []struct {
		name, directive string
		status          int
		header, value   string
		messages, chat  string
	}{
		{"overloaded", "status 529", 529, "Retry-After", "", `"overloaded_error"`, `"Overloaded"`},
		{"with seconds", "status 529 retry-after 1", 529, "Retry-After", "1", `"overloaded_error"`, `"code":"overloaded"`},
		{"with a huge hint", "status 429 retry-after 287441", 429, "Retry-After", "287441", `"rate_limit_error"`, `"rate_limit_exceeded"`},
		{"with milliseconds", "status 429 retry-after-ms 250", 429, "Retry-After-Ms", "250", `"rate_limit_error"`, `"rate_limit_exceeded"`},
		{"not to be retried", "status 500 should-retry false", 500, "X-Should-Retry", "false", `"api_error"`, `"server_error"`},
		{"auth", "status 401", 401, "Retry-After", "", `"authentication_error"`, `"invalid_api_key"`},
		{"unknown client error", "status 418", 418, "Retry-After", "", `"invalid_request_error"`, `"invalid_request_error"`},
		{"bad gateway", "status 502", 502, "Retry-After", "", `"Bad Gateway"`, `"Bad Gateway"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: " + tc.directive)})
			for d, says := range map[Dialect]string{Messages: tc.messages, Chat: tc.chat} {
				path, body := request(d)
				got := post(t, s, path, body)
				if got.status != tc.status || got.header.Get(tc.header) != tc.value || !strings.Contains(got.body, says) {
					t.Errorf("%s: %d %v %s", d, got.status, got.header, got.body)
				}
				if next := post(t, s, path, body); next.status != 200 || !hear(t, d, next.body).ended {
					t.Errorf("%s: attempt 2: %d", d, next.status)
				}
			}
		})
	}
	t.Run("with a date", func(t *testing.T) {
		s := start(t, Config{Script: MustScript("attempt 1: status 503 retry-after date 30s")})
		path, body := request(Chat)
		if got := post(t, s, path, body); !strings.HasSuffix(got.header.Get("Retry-After"), " GMT") {
			t.Errorf("%v", got.header)
		}
	})
}
