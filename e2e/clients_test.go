package e2e

import (
	"context"
	"errors"
	"testing"

	"github.com/unbroken-llm/unbroken/faultinject"
)

// client is one way to call one dialect.
type client struct {
	name   string
	speaks faultinject.Dialect
	run    func(context.Context, job) (reply, error)
	// noComments: it takes an SSE comment, or "data:" without its space, for an
	// error. Google sends neither.
	noComments bool
	// stubborn: it asks again in spite of x-should-retry, so that what it fails with
	// in the end may be the open breaker.
	stubborn bool
}

// goClients run in this process.
var goClients = []client{
	{name: "openai-go 3 stream", speaks: faultinject.Chat, run: runOpenAIStream},
	{name: "openai-go 3 accumulator", speaks: faultinject.Chat, run: runOpenAIAccumulator},
	{name: "anthropic-sdk-go 2 stream", speaks: faultinject.Messages, run: runAnthropicStream},
	{name: "anthropic-sdk-go 2 accumulate", speaks: faultinject.Messages, run: runAnthropicAccumulate},
	{name: "openai-go 3 responses", speaks: faultinject.Responses, run: runResponsesStream},
	{name: "openai-go 3 responses accumulator", speaks: faultinject.Responses, run: runResponsesAccumulator},
	{name: "aws-sdk-go 2 converse", speaks: faultinject.Converse, run: runConverse, stubborn: true},
	{name: "aws-sdk-go 2 invoke", speaks: faultinject.Invoke, run: runInvoke, stubborn: true},
	{name: "genai-go 1", speaks: faultinject.Gemini, run: runGenAI, noComments: true},
}

// nodeClients are the names that clients/run.mjs knows. The versions behind them
// are in clients/package.json.
var nodeClients = []struct {
	name       string
	speaks     faultinject.Dialect
	noComments bool
	stubborn   bool
}{
	{name: "openai 7 iterator", speaks: faultinject.Chat},
	{name: "openai 7 .stream()", speaks: faultinject.Chat},
	{name: "openai 6 iterator", speaks: faultinject.Chat},
	{name: "openai 6 .stream()", speaks: faultinject.Chat},
	{name: "openai 5 iterator", speaks: faultinject.Chat},
	{name: "openai 5 .stream()", speaks: faultinject.Chat},
	{name: "openai 4 iterator", speaks: faultinject.Chat},
	{name: "openai 4 .stream()", speaks: faultinject.Chat},
	{name: "vercel 7 openai", speaks: faultinject.Chat},
	{name: "vercel 6 openai", speaks: faultinject.Chat},
	{name: "vercel 6 openai-compatible", speaks: faultinject.Chat},
	{name: "langchain openai", speaks: faultinject.Chat},
	{name: "anthropic 1 iterator", speaks: faultinject.Messages},
	{name: "anthropic 1 .stream()", speaks: faultinject.Messages},
	{name: "anthropic 0.60 iterator", speaks: faultinject.Messages},
	{name: "anthropic 0.60 .stream()", speaks: faultinject.Messages},
	{name: "vercel 7 anthropic", speaks: faultinject.Messages},
	{name: "vercel 6 anthropic", speaks: faultinject.Messages},
	{name: "langchain anthropic", speaks: faultinject.Messages},
	{name: "openai 7 responses iterator", speaks: faultinject.Responses},
	{name: "openai 7 responses .stream()", speaks: faultinject.Responses},
	{name: "openai 6 responses iterator", speaks: faultinject.Responses},
	{name: "openai 6 responses .stream()", speaks: faultinject.Responses},
	{name: "openai agents", speaks: faultinject.Responses},
	{name: "vercel 7 openai responses", speaks: faultinject.Responses},
	{name: "vercel 6 openai responses", speaks: faultinject.Responses},
	{name: "langchain openai responses", speaks: faultinject.Responses},
	{name: "aws 3 ConverseStream", speaks: faultinject.Converse, stubborn: true},
	{name: "aws 3 InvokeModelWithResponseStream", speaks: faultinject.Invoke, stubborn: true},
	{name: "genai 3", speaks: faultinject.Gemini},
	{name: "genai 2", speaks: faultinject.Gemini},
	{name: "vercel 7 google", speaks: faultinject.Gemini},
	{name: "vercel 6 google", speaks: faultinject.Gemini},
	{name: "langchain google", speaks: faultinject.Gemini, noComments: true},
}

// inNode returns the clients that run in Node.
func inNode(t *testing.T) []client {
	n := startNode(t)
	var list []client
	for _, c := range nodeClients {
		list = append(list, client{name: c.name, speaks: c.speaks, noComments: c.noComments, stubborn: c.stubborn, run: func(ctx context.Context, j job) (reply, error) {
			j.Client = c.name
			return n.run(ctx, j)
		}})
	}
	return list
}

// joinFinish adds a finish reason that should come once, so that a second one
// shows.
func joinFinish(had, reason string) string {
	if had == "" || reason == "" {
		return had + reason
	}
	return had + "+" + reason
}

// unjoin is the first error of several, without its wrapping.
func unjoin(err error) error {
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		err = many.Unwrap()[0]
	}
	for errors.Unwrap(err) != nil {
		err = errors.Unwrap(err)
	}
	return err
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
