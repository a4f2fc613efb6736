package interrupt

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/unbroken-llm/unbroken/turn"
)

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

func headers(kv ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(kv); i += 2 {
			if strings.EqualFold(kv[i], name) {
				return kv[i+1]
			}
		}
		return ""
	}
}

func TestStatusAlone(t *testing.T) {
	want := map[Kind][]int{
		BadStatus:   {408, 409, 424, 429, 500, 501, 502, 503, 504, 520, 521, 524, 529, 599},
		Permanent:   {101, 301, 302, 307, 308, 400, 401, 402, 403, 404, 405, 410, 413, 418, 422, 451, 499, 600, 0},
		EmptyAnswer: {200, 201, 204},
	}
	for kind, statuses := range want {
		for _, status := range statuses {
			c := FromStatus(status, nil, nil, noon)
			if c.Kind != kind || c.Status != status {
				t.Errorf("status %d: %v with status %d, want %v", status, c.Kind, c.Status, kind)
			}
			if c.Transient() != (kind != Permanent) {
				t.Errorf("status %d: transient %v", status, c.Transient())
			}
		}
	}
}

func TestErrorBodies(t *testing.T) {
	for _, tc := range []struct {
		name   string
		status int
		body   string
		want   Cause
	}{
		{"openai rate limit", 429, `{"error":{"message":"Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000. Please reduce the length of the messages.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`,
			Cause{Kind: BadStatus, Type: "tokens", Code: "rate_limit_exceeded"}},
		{"openai hard quota", 429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`,
			Cause{Kind: Permanent, Type: "insufficient_quota", Code: "insufficient_quota", Message: "You exceeded your current quota"}},
		{"openai billing limit", 429, `{"error":{"message":"m","type":"invalid_request_error","code":"billing_hard_limit_reached"}}`,
			Cause{Kind: Permanent, Type: "invalid_request_error", Code: "billing_hard_limit_reached", Message: "m"}},
		{"openai context overflow", 400, `{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
			Cause{Kind: Permanent, Type: "invalid_request_error", Code: "context_length_exceeded", ContextOverflow: true}},
		{"overflow wrapped in a 500", 500, `{"error":{"message":"m","code":"context_length_exceeded"}}`,
			Cause{Kind: Permanent, Code: "context_length_exceeded", Message: "m", ContextOverflow: true}},
		{"azure content filter", 400, `{"error":{"message":"m","type":null,"param":"prompt","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`,
			Cause{Kind: Permanent, Code: "content_filter", Filtered: true, Message: "m"}},
		{"bedrock's model failed", 424, `{"message":"The model returned an error.","originalStatusCode":500,"resourceName":"arn:m"}`,
			Cause{Kind: BadStatus, Message: "The model returned an error."}},
		{"bedrock's model refused", 424, `{"message":"Malformed input","originalStatusCode":400,"resourceName":"arn:m"}`,
			Cause{Kind: Permanent, Message: "Malformed input"}},
		{"tgi failed to generate", 424, `{"error":"Request failed during generation: Server error","error_type":"generation"}`,
			Cause{Kind: BadStatus, Message: "Request failed during generation: Server error"}},
		{"anthropic overloaded", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`,
			Cause{Kind: BadStatus, Type: "overloaded_error", Message: "Overloaded"}},
		{"anthropic billing", 400, `{"type":"error","error":{"type":"billing_error","message":"m"}}`,
			Cause{Kind: Permanent, Type: "billing_error", Message: "m"}},
		{"anthropic overflow", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}`,
			Cause{Kind: Permanent, Type: "invalid_request_error", ContextOverflow: true}},
		{"anthropic refuses a prefill", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"This model does not support assistant message prefill. The conversation must end with a user message."}}`,
			Cause{Kind: Permanent, Type: "invalid_request_error", RejectsPrefill: true}},
		{"gemini refuses a prefill", 400, `[{"error":{"code":400,"message":"Requests ending with a model turn are not supported","status":"INVALID_ARGUMENT"}}]`,
			Cause{Kind: Permanent, Type: "INVALID_ARGUMENT", Code: "400", RejectsPrefill: true}},
		{"mistral refuses a prefill", 400, `{"object":"error","message":"Expected last role User or Tool (or Assistant with prefix True) for serving but got assistant","type":"invalid_request_message_order","code":"3230"}`,
			Cause{Kind: Permanent, Type: "invalid_request_message_order", Code: "3230", RejectsPrefill: true}},
		{"vllm refuses its flags, fastapi detail list", 422, `{"detail":[{"loc":["body"],"msg":"Cannot set both continue_final_message and add_generation_prompt","type":"value_error"}]}`,
			Cause{Kind: Permanent, Type: "value_error", RejectsPrefill: true}},
		{"llama.cpp refuses a prefill", 400, `{"error":{"code":400,"message":"Assistant response prefill is incompatible with enable_thinking.","type":"invalid_request_error"}}`,
			Cause{Kind: Permanent, Type: "invalid_request_error", Code: "400", RejectsPrefill: true}},
		{"a 500 that mentions prefill refuses nothing", 500, `{"error":{"message":"prefill worker crashed"}}`,
			Cause{Kind: BadStatus, Message: "prefill worker crashed"}},
		{"llama.cpp overflow", 400, `{"error":{"code":400,"message":"m","type":"exceed_context_size_error","n_ctx":4096}}`,
			Cause{Kind: Permanent, Type: "exceed_context_size_error", Code: "400", Message: "m", ContextOverflow: true}},
		{"fastapi detail", 503, `{"detail":"model is loading"}`, Cause{Kind: BadStatus, Message: "model is loading"}},
		{"ollama string", 500, `{"error":"llama runner process has terminated"}`, Cause{Kind: BadStatus, Message: "llama runner process has terminated"}},
		{"json string", 502, `"bad gateway"`, Cause{Kind: BadStatus, Message: "bad gateway"}},
		{"bare text", 503, " upstream connect error\n or disconnect\r\n", Cause{Kind: BadStatus, Message: "upstream connect error or disconnect"}},
		{"html page", 502, "<html>\r\n<head><TITLE>502 Bad Gateway</TITLE></head><body>secret</body>", Cause{Kind: BadStatus, Message: "502 Bad Gateway"}},
		{"html without a title", 502, "<!doctype html><p>x", Cause{Kind: BadStatus, Message: "an HTML page"}},
		{"json cut short", 500, `{"error":{"mess`, Cause{Kind: BadStatus, Message: `{"error":{"mess`}},
		{"null error", 500, `{"error":null,"message":"m"}`, Cause{Kind: BadStatus, Message: "m"}},
		{"empty array", 500, `[]`, Cause{Kind: BadStatus, Message: "[]"}},
		{"array of null", 500, `[null]`, Cause{Kind: BadStatus, Message: "[null]"}},
		{"model not found behind a 503", 503, `{"error":{"message":"m","code":"model_not_found"}}`, Cause{Kind: Permanent, Code: "model_not_found", Message: "m"}},
		{"200 with an error object", 200, `{"type":"error","error":{"type":"overloaded_error","message":"m"}}`,
			Cause{Kind: Provider5xxMidStream, Status: 529, Type: "overloaded_error", Message: "m"}},
		{"200 with a refusal", 200, `{"error":{"message":"m","type":"invalid_request_error"}}`,
			Cause{Kind: Permanent, Status: 400, Type: "invalid_request_error", Message: "m"}},
		{"200 with a page", 200, `<html><title>Sign in</title>`, Cause{Kind: EmptyAnswer, Message: "Sign in"}},
		{"200 with an ordinary answer", 200, `{"id":"x","object":"chat.completion","choices":[]}`, Cause{Kind: EmptyAnswer}},
		{"200 with a null error", 200, `{"id":"x","error":null,"status":"completed"}`, Cause{Kind: EmptyAnswer, Type: "completed"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := FromStatus(tc.status, nil, []byte(tc.body), noon)
			if tc.want.Status == 0 {
				tc.want.Status = tc.status
			}
			if tc.want.Message == "" {
				tc.want.Message = got.Message // long ones are checked by what they lead to
			}
			if tc.want.Kind == EmptyAnswer {
				got.Type = tc.want.Type
			}
			if got != tc.want {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

func TestShouldRetryOverridesTheStatus(t *testing.T) {
	quota := `{"error":{"code":"insufficient_quota"}}`
	for _, tc := range []struct {
		name   string
		status int
		header string
		body   string
		want   Kind
	}{
		// A proxy in front of us, or another Unbroken, that has spent its own
		// tries says so; obeying keeps attempts from multiplying (FIELD-REPORTS F7).
		{"spent tries", 503, "false", "", Permanent},
		{"rate limit not worth it", 429, "FALSE", "", Permanent},
		{"4xx worth it", 400, "true", "", BadStatus},
		{"quota is final", 429, "true", quota, Permanent},
		{"overflow is final", 400, "true", `{"error":{"code":"context_length_exceeded"}}`, Permanent},
		{"a redirect is not retried", 302, "true", "", Permanent},
		{"garbage is ignored, retryable", 503, "maybe", "", BadStatus},
		{"garbage is ignored, permanent", 403, "1", "", Permanent},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := FromStatus(tc.status, headers("x-should-retry", tc.header), []byte(tc.body), noon)
			if c.Kind != tc.want {
				t.Errorf("got %v, want %v", c.Kind, tc.want)
			}
		})
	}
}

func TestRetryAfter(t *testing.T) {
	for _, tc := range []struct {
		name, seconds, millis string
		want                  time.Duration
	}{
		{"seconds", "2", "", 2 * time.Second},
		{"fraction", "1.5", "", 1500 * time.Millisecond},
		{"spaces", " 7 ", "", 7 * time.Second},
		{"days are kept for the planner to refuse", "287441", "", 287441 * time.Second},
		{"milliseconds win", "30", "250", 250 * time.Millisecond},
		{"garbage milliseconds fall back", "3", "soon", 3 * time.Second},
		{"date", "Wed, 04 Mar 2026 12:00:30 GMT", "", 30 * time.Second},
		{"obsolete date", "Wednesday, 04-Mar-26 12:01:00 GMT", "", time.Minute},
		{"asctime date", "Wed Mar  4 12:00:05 2026", "", 5 * time.Second},
		{"date in the past", "Wed, 04 Mar 2026 11:00:00 GMT", "", 0},
		{"negative", "-5", "", 0},
		{"garbage", "a while", "", 0},
		{"not a number", "NaN", "", 0},
		{"infinite", "Inf", "", 0},
		{"beyond a float", "1e999", "", math.MaxInt64},
		{"beyond a duration", "99999999999999", "", math.MaxInt64},
		{"absent", "", "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := headers("Retry-After", tc.seconds, "Retry-After-Ms", tc.millis)
			if got := FromStatus(429, h, nil, noon).RetryAfter; got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestMessagesAreOneBoundedLine(t *testing.T) {
	long := strings.Repeat("é", 4000)
	for _, body := range []string{long, `{"error":"` + long + `"}`, "a\x1b[31m\x00b\nc", "\xff\xfe\x00", "<title>" + strings.Repeat("İ", 3000)} {
		m := FromStatus(500, nil, []byte(body), noon).Message
		if len(m) > maxMessage || !utf8.ValidString(m) || strings.ContainsAny(m, "\n\x1b\x00") {
			t.Errorf("message %q of %d bytes", m, len(m))
		}
	}
	if c := FromFault(turn.WireFault{Message: long, Code: long, Type: long}); len(c.Message) != maxMessage || len(c.Code) != maxWord || len(c.Type) != maxWord {
		t.Errorf("bounds: %d %d %d", len(c.Message), len(c.Code), len(c.Type))
	}
}

func TestInBandErrors(t *testing.T) {
	for _, tc := range []struct {
		name     string
		fault    turn.WireFault
		want     Kind
		status   int
		overflow bool
	}{
		{"anthropic overloaded", turn.WireFault{Type: "overloaded_error"}, Provider5xxMidStream, 529, false},
		{"anthropic api error", turn.WireFault{Type: "api_error"}, Provider5xxMidStream, 500, false},
		{"anthropic timeout", turn.WireFault{Type: "timeout_error"}, Provider5xxMidStream, 504, false},
		{"anthropic rate limit", turn.WireFault{Type: "rate_limit_error"}, Provider5xxMidStream, 429, false},
		{"anthropic invalid request", turn.WireFault{Type: "invalid_request_error"}, Permanent, 400, false},
		{"anthropic billing", turn.WireFault{Type: "billing_error"}, Permanent, 402, false},
		{"anthropic authentication", turn.WireFault{Type: "authentication_error"}, Permanent, 401, false},
		{"anthropic permission", turn.WireFault{Type: "permission_error"}, Permanent, 403, false},
		{"anthropic not found", turn.WireFault{Type: "not_found_error"}, Permanent, 404, false},
		{"anthropic too large", turn.WireFault{Type: "request_too_large"}, Permanent, 413, false},
		{"openai server error", turn.WireFault{Type: "server_error", Code: "server_error"}, Provider5xxMidStream, 500, false},
		{"openai quota, recorded", turn.WireFault{Type: "insufficient_quota", Code: "insufficient_quota"}, Permanent, 429, false},
		{"openai overflow", turn.WireFault{Type: "invalid_request_error", Code: "context_length_exceeded"}, Permanent, 400, true},
		{"openai usage policy", turn.WireFault{Code: "invalid_prompt"}, Permanent, 400, false},
		{"deepseek resources", turn.WireFault{Code: "insufficient_system_resource"}, Provider5xxMidStream, 503, false},
		{"openrouter numeric code", turn.WireFault{Code: "502", Message: "Provider disconnected"}, Provider5xxMidStream, 502, false},
		{"openrouter rate limit code", turn.WireFault{Code: "429"}, Provider5xxMidStream, 429, false},
		{"openrouter 400, recorded", turn.WireFault{Code: "400", Message: "Token limit reached"}, Permanent, 400, false},
		{"openrouter moderation", turn.WireFault{Code: "403"}, Permanent, 403, false},
		{"groq generation failure, recorded", turn.WireFault{Type: "invalid_request_error", Code: "tool_use_failed", Status: 400}, Provider5xxMidStream, 400, false},
		{"vllm bad request", turn.WireFault{Type: "BadRequestError", Code: "400"}, Permanent, 400, false},
		{"vllm engine failure", turn.WireFault{Type: "InternalServerError", Code: "500"}, Provider5xxMidStream, 500, false},
		{"vllm overflow by its words", turn.WireFault{Type: "BadRequestError", Message: "This model's maximum context length is 4096 tokens."}, Permanent, 400, true},
		{"gemini shed load", turn.WireFault{Type: "UNAVAILABLE", Code: "503", Status: 503}, Provider5xxMidStream, 503, false},
		{"gemini bad argument", turn.WireFault{Type: "INVALID_ARGUMENT", Code: "400"}, Permanent, 400, false},
		{"a real status is kept over the word's", turn.WireFault{Type: "api_error", Status: 504}, Provider5xxMidStream, 504, false},
		{"unknown type", turn.WireFault{Type: "gremlins"}, Provider5xxMidStream, 0, false},
		{"unknown code, known type", turn.WireFault{Type: "overloaded_error", Code: "x-77"}, Provider5xxMidStream, 529, false},
		{"nothing at all", turn.WireFault{}, Provider5xxMidStream, 0, false},
		{"a rate limit that speaks of length", turn.WireFault{Type: "tokens", Code: "rate_limit_exceeded", Message: "Please reduce the length of the messages"}, Provider5xxMidStream, 429, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := FromFault(tc.fault)
			if c.Kind != tc.want || c.Status != tc.status || c.ContextOverflow != tc.overflow {
				t.Errorf("got %v status %d overflow %v, want %v %d %v", c.Kind, c.Status, c.ContextOverflow, tc.want, tc.status, tc.overflow)
			}
		})
	}
}

// The tables are compared in lower case; a row spelled otherwise would never match.
func TestTablesAreLowerCase(t *testing.T) {
	for w, row := range words {
		if w != strings.ToLower(w) || row.class == strange || row.status < 400 {
			t.Errorf("row %q: %+v", w, row)
		}
	}
	for _, p := range append(append([]string(nil), prefillWords...), overflowWords...) {
		if p != strings.ToLower(p) || p == "" {
			t.Errorf("phrase %q", p)
		}
	}
}

func FuzzFromStatus(f *testing.F) {
	f.Add(429, []byte(`{"error":{"message":"m","code":502}}`), "1")
	f.Add(200, []byte(`[{"error":"x"}]`), "Wed, 04 Mar 2026 12:00:30 GMT")
	f.Add(500, []byte("<title>"), "-1")
	f.Fuzz(func(t *testing.T, status int, body []byte, hint string) {
		c := FromStatus(status, headers("retry-after", hint), body, noon)
		if c.Kind == None || c.RetryAfter < 0 || len(c.Message) > maxMessage || !utf8.ValidString(c.Message) {
			t.Errorf("cause %+v", c)
		}
		if c.Kind == BadStatus && status < 400 {
			t.Errorf("status %d is retried", status)
		}
	})
}
