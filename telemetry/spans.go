package telemetry

import (
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// What spans are told with. The gen_ai names are those of the OpenTelemetry semantic
// conventions for generative AI, spelled here because they are not stable yet.
const (
	keyOperation = attribute.Key("gen_ai.operation.name")
	keyProvider  = attribute.Key("gen_ai.provider.name")
	keyModel     = attribute.Key("gen_ai.request.model")
	keyInput     = attribute.Key("gen_ai.usage.input_tokens")
	keyOutput    = attribute.Key("gen_ai.usage.output_tokens")
	keyError     = attribute.Key("error.type")
	keyStatus    = attribute.Key("http.response.status_code")

	keyRun        = attribute.Key("unbroken.run")
	keyDialect    = attribute.Key("unbroken.dialect")
	keyUpstream   = attribute.Key("unbroken.upstream")
	keyOutcome    = attribute.Key("unbroken.outcome")
	keyWhose      = attribute.Key("unbroken.whose")
	keyAttempts   = attribute.Key("unbroken.attempts")
	keyRecoveries = attribute.Key("unbroken.recoveries")
	keyRepaid     = attribute.Key("unbroken.repaid_tokens")
	keySaved      = attribute.Key("unbroken.saved_tokens")
	keyEvents     = attribute.Key("unbroken.events")
	keyIn         = attribute.Key("unbroken.bytes_in")
	keyOut        = attribute.Key("unbroken.bytes_out")
	keyBeats      = attribute.Key("unbroken.heartbeats")
	keyAttempt    = attribute.Key("unbroken.attempt")
	keyManner     = attribute.Key("unbroken.manner")
	keyCause      = attribute.Key("unbroken.cause")
	keyPlan       = attribute.Key("unbroken.plan")
	keyReason     = attribute.Key("unbroken.reason")
	keySeam       = attribute.Key("unbroken.seam")
	keyJoined     = attribute.Key("unbroken.joined")
	keySkipped    = attribute.Key("unbroken.skipped_bytes")
	keyHeld       = attribute.Key("unbroken.held_bytes")
	keyGap        = attribute.Key("unbroken.gap_seconds")
)

// Names of events.
const (
	eventContent     = "unbroken.first_content"
	eventInterrupted = "unbroken.interrupted"
	eventSeam        = "unbroken.seam"
	eventHealed      = "unbroken.healed"
	eventDemoted     = "unbroken.demoted"
	eventUnprotected = "unbroken.unprotected"
)

// operation is the well-known name of what a dialect asks for.
func operation(dialect string) string {
	switch dialect {
	case "completions":
		return "text_completion"
	case "gemini":
		return "generate_content"
	}
	return "chat"
}

// providerName is the well-known name of the family that a dialect belongs to. Who
// really answers is the upstream.
func providerName(dialect string) string {
	switch {
	case dialect == "messages":
		return "anthropic"
	case dialect == "gemini", dialect == "interactions":
		return "gcp.gemini"
	case strings.HasPrefix(dialect, "bedrock-"):
		return "aws.bedrock"
	}
	return "openai"
}

func spanName(dialect, model string) string {
	return strings.TrimSpace(operation(dialect) + " " + model)
}
