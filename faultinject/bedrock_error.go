package faultinject

import (
	"fmt"
	"strings"

	"github.com/unbroken-llm/unbroken/eventstream"
)

// bedrockFailures are the kinds of errors in Bedrock's words (API reference,
// "Errors" of ConverseStream; the texts as issues of its SDKs quote them). A
// stream has exceptions for five of the types, and says the others as it can.
var bedrockFailures = map[string]Refusal{
	"overloaded":  {Status: 424, Type: "ModelStreamErrorException", Message: "The system encountered an unexpected error during processing. Try your request again."},
	"api":         {Status: 500, Type: "InternalServerException", Message: "The system encountered an unexpected error during processing. Try your request again."},
	"timeout":     {Status: 408, Type: "ModelTimeoutException", Message: "Model has timed out in processing the request. Try your request again."},
	"unavailable": {Status: 503, Type: "ServiceUnavailableException", Message: "Bedrock is unable to process your request."},
	"rate-limit":  {Status: 429, Type: "ThrottlingException", Message: "Too many requests, please wait before trying again."},
	"quota":       {Status: 429, Type: "ThrottlingException", Message: "Too many tokens per day, please wait before trying again."},
	"invalid":     {Status: 400, Type: "ValidationException", Message: "Malformed input request, please reformat your input and try again."},
	"context":     {Status: 400, Type: "ValidationException", Message: "The model returned the following errors: prompt is too long: 210000 tokens > 200000 maximum"},
	"policy":      {Status: 400, Type: "ValidationException", Message: "The model returned the following errors: Output blocked by content filtering policy"},
	"auth":        {Status: 403, Type: "AccessDeniedException", Message: "Authentication failed: Please make sure your API Key is valid."},
	"billing":     {Status: 403, Type: "AccessDeniedException", Message: "Model access is denied due to INVALID_PAYMENT_INSTRUMENT: A valid payment instrument must be provided."},
	"permission":  {Status: 403, Type: "AccessDeniedException", Message: "You don't have access to the model with the specified model ID."},
	"not-found":   {Status: 404, Type: "ResourceNotFoundException", Message: "Could not resolve the foundation model from the provided model identifier."},
	"too-large":   {Status: 413, Type: "ValidationException", Message: "Input is too long for requested model."},
}

// bedrockTypes pairs statuses with the exceptions that are sent under them.
var bedrockTypes = map[int]string{
	400: "ValidationException", 401: "UnrecognizedClientException", 403: "AccessDeniedException", 404: "ResourceNotFoundException",
	408: "ModelTimeoutException", 424: "ModelErrorException", 429: "ThrottlingException", 500: "InternalServerException", 503: "ServiceUnavailableException",
}

// bedrockType is the exception of a refusal. Those of the house's own have none.
func bedrockType(r *Refusal) string {
	if strings.HasSuffix(r.Type, "Exception") {
		return r.Type
	}
	if name, ok := bedrockTypes[r.Status]; ok {
		return name
	}
	if r.Status < 500 {
		return "ValidationException"
	}
	return "ServiceUnavailableException"
}

// bedrockFailure puts a kind of error in Bedrock's words. What only a status is
// known of keeps its text.
func bedrockFailure(k errorKind) *Refusal {
	r, ok := bedrockFailures[k.name]
	if !ok {
		r = Refusal{Status: k.status, Message: k.text}
		r.Type = bedrockType(&r)
	}
	return &r
}

// notValid is a refusal in the service's words.
func notValid(format string, args ...any) *Refusal {
	return &Refusal{Status: 400, Type: "ValidationException", Message: fmt.Sprintf(format, args...)}
}

// ofModel is a refusal by the model behind the service.
func ofModel(r *Refusal) *Refusal {
	if r == nil {
		return nil
	}
	return notValid("The model returned the following errors: %s", r.Message)
}

// bedrockRefuse is the body of an error; its type stands in a header.
func bedrockRefuse(r *Refusal, _ string) []byte {
	return []byte(`{"message":` + quote(r.Message) + `}`)
}

// bedrockInBand is an exception's frame; of an error of the model's it also says
// what the model said. As shape "raw" it is an error that the service has no model
// of, whose code and text are headers.
func bedrockInBand(f InBand, k errorKind) []byte {
	r := bedrockFailure(k)
	name := strings.ToLower(r.Type[:1]) + r.Type[1:]
	if f.Shape == "raw" {
		return eventstream.AppendFault(nil, strings.TrimSuffix(r.Type, "Exception"), r.Message)
	}
	more := ""
	if r.Type == "ModelStreamErrorException" {
		more = fmt.Sprintf(`,"originalMessage":%s,"originalStatusCode":%d`, quote(k.text), k.status)
	}
	return eventstream.Append(nil, eventstream.Exception, name, []byte(`{"message":`+quote(r.Message)+more+`}`))
}
