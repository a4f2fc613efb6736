package faultinject

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/unbroken-llm/unbroken/eventstream"
)

// A frame can break where text cannot: in its lengths, in its checksums, in its
// last byte.
func TestBrokenFrames(t *testing.T) {
	for _, d := range []Dialect{Converse, Invoke} {
		path, body := request(d)
		for _, tc := range []struct {
			script string
			frames int   // that can be read
			rest   int   // bytes behind them, -1 for any number
			broken error // what reading on ends with
			end    func(error) bool
		}{
			{"half with polite keeping 5 inside event 4", 3, 5, nil, isNil},
			{"half with rst keeping 12 inside text 3", -1, -1, nil, isReset},
			{"half with fin inside event 4", 3, -1, nil, isShort},
			{"bad-crc after event 4", 3, -1, eventstream.ErrChecksum, isNil},
			{"bad-crc prelude after event 4; fin after event 6", 3, -1, eventstream.ErrPrelude, isShort},
			{"no-blank-line", -1, -1, nil, isNil},
		} {
			t.Run(tc.script+"/"+string(d), func(t *testing.T) {
				s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: pace 1ms; " + tc.script)})
				got := post(t, s, path, body)
				frames, rest := framesOf(got.body)
				_, _, err := eventstream.Read([]byte(rest), 0)
				if !tc.end(got.err) || !errors.Is(err, tc.broken) || tc.frames >= 0 && len(frames) != tc.frames || tc.rest >= 0 && len(rest) != tc.rest {
					t.Errorf("%d frames, %d bytes behind them, %v; ended with %v", len(frames), len(rest), err, got.err)
				}
				if rest == "" && !isReset(got.err) {
					t.Error("nothing is broken")
				}
			})
		}
	}
}

func TestTextHasNoChecksums(t *testing.T) {
	s := start(t, Config{Script: MustScript("attempt 1: bad-crc after event 3")})
	path, body := request(Messages)
	if got := post(t, s, path, body); got.status != 500 || !strings.Contains(got.body, "needs frames with checksums, but this dialect has text events") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestWholeAnswersHaveNoChecksums(t *testing.T) {
	s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: bad-crc at event 1")})
	path, body := request(Converse)
	if got := post(t, s, strings.TrimSuffix(path, "-stream"), body); got.status != 200 || !json.Valid([]byte(got.body)) {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// An error inside of the stream is a frame of its own kind (WIRE 1.6).
func TestBedrockInBandErrors(t *testing.T) {
	for _, tc := range []struct{ script, last string }{
		{"error overloaded after text 2", `exception modelStreamErrorException {"message":"The system encountered an unexpected error during processing. Try your request again.","originalMessage":"Overloaded","originalStatusCode":529}`},
		{"error api after text 2", `exception internalServerException {"message":`},
		{"error timeout after text 2", `exception modelTimeoutException {"message":"Model has timed out`},
		{"error unavailable after start", `exception serviceUnavailableException {"message":"Bedrock is unable to process your request."}`},
		{"error rate-limit at start", `exception throttlingException {"message":"Too many requests`},
		{"error invalid in text", `exception validationException {`},
		{"error permission in text", `exception accessDeniedException {`},
		{"error api as raw after text 2", `error InternalServer The system encountered an unexpected error`},
	} {
		for _, d := range []Dialect{Converse, Invoke} {
			s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: " + tc.script)})
			path, body := request(d)
			got := post(t, s, path, body)
			lines := strings.Split(strings.TrimSuffix(unframed(got.body), "\n"), "\n")
			if got.status != 200 || got.err != nil || !strings.HasPrefix(lines[len(lines)-1], tc.last) || strings.Contains(unframed(got.body), "end_turn") {
				t.Errorf("%s, %s: %d %v %s", d, tc.script, got.status, got.err, unframed(got.body))
			}
		}
	}
	s := start(t, Config{Scenario: "text", Script: MustScript("attempt 1: error overloaded as chunk after text 2")})
	path, body := request(Invoke)
	if got := unframed(post(t, s, path, body).body); !strings.HasSuffix(got, `event chunk {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`+"\n") {
		t.Errorf("%s", got)
	}
}

// In place of the stream, the type of an error stands in a header.
func TestBedrockStatuses(t *testing.T) {
	for status, kind := range map[int]string{400: "ValidationException", 403: "AccessDeniedException", 404: "ResourceNotFoundException", 408: "ModelTimeoutException",
		424: "ModelErrorException", 429: "ThrottlingException", 500: "InternalServerException", 503: "ServiceUnavailableException"} {
		for _, d := range []Dialect{Converse, Invoke} {
			s := start(t, Config{Script: MustScript(fmt.Sprintf("attempt 1: status %d", status))})
			path, body := request(d)
			got := post(t, s, path, body)
			if got.status != status || got.header.Get("X-Amzn-Errortype") != kind || !strings.HasPrefix(got.body, `{"message":"`) {
				t.Errorf("%s: %d %v %s", d, got.status, got.header, got.body)
			}
		}
	}
}

// A real stream of frames is cut frame by frame, and is otherwise as it came.
func TestFaultsOnABedrockTarget(t *testing.T) {
	real := start(t, Config{Scenario: "tool"})
	u, err := url.Parse(real.URL())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []Dialect{Converse, Invoke} {
		path, body := request(d)
		finish := map[Dialect]string{Converse: "event messageStop", Invoke: "message_delta"}[d]
		for _, tc := range []struct {
			script, has, lacks string
			end                func(error) bool
		}{
			{"fin before tool", " up.", "get_weather", isShort},
			{"fin after tool-args 2", `{\"l`, `ocation`, isShort},
			{"error rate-limit after tool", "throttlingException", "location", isNil},
			{"bad-crc in close 2", "get_weather", finish, isNil},
		} {
			s := start(t, Config{Target: u, Script: MustScript("attempt 1: " + tc.script)})
			got := post(t, s, path, body)
			list, err := s.WaitLog(patience(t), allEnded(1))
			if err != nil || !list[0].Applied || list[0].Dialect != d || !strings.Contains(list[0].Model, "claude-sonnet-4-5") || !tc.end(got.err) {
				t.Errorf("%s, %s: %v, %v, applied %v", d, tc.script, got.err, err, list[0].Applied)
			}
			if text := unframed(got.body); !strings.Contains(text, tc.has) || strings.Contains(text, tc.lacks) {
				t.Errorf("%s, %s: %s", d, tc.script, text)
			}
		}
	}
}
