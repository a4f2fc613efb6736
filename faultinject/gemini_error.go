package faultinject

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// googleStatuses pairs HTTP codes with canonical statuses (aip.dev/193). The
// first row of a code is the one that is said.
var googleStatuses = []struct {
	code   int
	status string
}{
	{400, "INVALID_ARGUMENT"}, {400, "FAILED_PRECONDITION"}, {401, "UNAUTHENTICATED"}, {403, "PERMISSION_DENIED"}, {404, "NOT_FOUND"},
	{409, "ABORTED"}, {429, "RESOURCE_EXHAUSTED"}, {499, "CANCELLED"}, {500, "INTERNAL"}, {501, "UNIMPLEMENTED"}, {503, "UNAVAILABLE"},
	{504, "DEADLINE_EXCEEDED"},
}

func googleStatus(code int) string {
	for _, s := range googleStatuses {
		if s.code == code {
			return s.status
		}
	}
	if code >= 400 && code < 500 {
		return "FAILED_PRECONDITION"
	}
	return "UNAVAILABLE"
}

// googleFailures are the kinds of errors in Google's words, as they are
// reported (ai.google.dev/gemini-api/docs/troubleshooting and issues of
// google-gemini/gemini-cli).
var googleFailures = map[string]Refusal{
	"overloaded":  {Status: 503, Type: "UNAVAILABLE", Message: "The model is overloaded. Please try again later."},
	"api":         {Status: 500, Type: "INTERNAL", Message: "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting"},
	"timeout":     {Status: 504, Type: "DEADLINE_EXCEEDED", Message: "Deadline expired before operation could complete."},
	"unavailable": {Status: 503, Type: "UNAVAILABLE", Message: "The service is currently unavailable."},
	"rate-limit":  {Status: 429, Type: "RESOURCE_EXHAUSTED", Message: "Resource has been exhausted (e.g. check quota)."},
	"quota":       {Status: 429, Type: "RESOURCE_EXHAUSTED", Message: "You exceeded your current quota, please check your plan and billing details."},
	"invalid":     {Status: 400, Type: "INVALID_ARGUMENT", Message: "Request contains an invalid argument."},
	"context":     {Status: 400, Type: "INVALID_ARGUMENT", Message: "The input token count (1210000) exceeds the maximum number of tokens allowed (1048576)."},
	"policy":      {Status: 400, Type: "INVALID_ARGUMENT", Message: "The request was blocked by content policy."},
	"auth":        {Status: 401, Type: "UNAUTHENTICATED", Message: "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential."},
	"billing":     {Status: 400, Type: "FAILED_PRECONDITION", Message: "Billing account is not active."},
	"permission":  {Status: 403, Type: "PERMISSION_DENIED", Message: "The caller does not have permission"},
	"not-found":   {Status: 404, Type: "NOT_FOUND", Message: "The model is not found for API version v1beta, or is not supported for generateContent."},
	"too-large":   {Status: 400, Type: "INVALID_ARGUMENT", Message: "Request payload size exceeds the limit: 20971520 bytes."},
}

// badArgument is a refusal in Google's words.
func badArgument(format string, args ...any) *Refusal {
	return &Refusal{Status: 400, Type: "INVALID_ARGUMENT", Message: fmt.Sprintf(format, args...)}
}

// googleFailure puts a kind of error in Google's words. What only a status is
// known of keeps its text.
func googleFailure(k errorKind) *Refusal {
	if r, ok := googleFailures[k.name]; ok {
		return &r
	}
	return &Refusal{Status: k.status, Type: googleStatus(k.status), Message: k.text}
}

// googleError is the error object of Google's APIs (google.rpc.Status). The core
// refuses in words of OpenAI's kind; they get the canonical status.
func googleError(r *Refusal) string {
	status, details := r.Type, ""
	if status != strings.ToUpper(status) || status == "" {
		status = googleStatus(r.Status)
	}
	if r.Details != "" {
		details = `,"details":` + r.Details
	}
	return fmt.Sprintf(`{"error":{"code":%d,"message":%s,"status":%s%s}}`, r.Status, quote(r.Message), quote(status), details)
}

// prettyError is the same as a body: over several lines.
func prettyError(r *Refusal) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(googleError(r)), "", "  "); err != nil {
		panic("BUG: an error has no JSON form: " + err.Error())
	}
	b.WriteByte('\n')
	return b.Bytes()
}
