package e2e

import (
	"context"
	"errors"
	"testing"
)

// client is one way to call one dialect.
type client struct {
	name string
	chat bool // Chat Completions, else Messages
	run  func(context.Context, job) (reply, error)
}

// goClients run in this process.
var goClients = []client{
	{"openai-go 3 stream", true, runOpenAIStream},
	{"openai-go 3 accumulator", true, runOpenAIAccumulator},
	{"anthropic-sdk-go 2 stream", false, runAnthropicStream},
	{"anthropic-sdk-go 2 accumulate", false, runAnthropicAccumulate},
}

// nodeClients are the names that clients/run.mjs knows. The versions behind them
// are in clients/package.json.
var nodeClients = []struct {
	name string
	chat bool
}{
	{"openai 7 iterator", true},
	{"openai 7 .stream()", true},
	{"openai 6 iterator", true},
	{"openai 6 .stream()", true},
	{"openai 5 iterator", true},
	{"openai 5 .stream()", true},
	{"openai 4 iterator", true},
	{"openai 4 .stream()", true},
	{"vercel 7 openai", true},
	{"vercel 6 openai", true},
	{"vercel 6 openai-compatible", true},
	{"langchain openai", true},
	{"anthropic 1 iterator", false},
	{"anthropic 1 .stream()", false},
	{"anthropic 0.60 iterator", false},
	{"anthropic 0.60 .stream()", false},
	{"vercel 7 anthropic", false},
	{"vercel 6 anthropic", false},
	{"langchain anthropic", false},
}

// inNode returns the clients that run in Node.
func inNode(t *testing.T) []client {
	n := startNode(t)
	var list []client
	for _, c := range nodeClients {
		list = append(list, client{c.name, c.chat, func(ctx context.Context, j job) (reply, error) {
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
