package main

import (
	"context"
	"errors"
)

// model is a provider's API, by its official SDK.
type model interface {
	// ask sends the whole conversation and returns the next turn.
	ask(ctx context.Context, run string, c conversation) (turn, error)
	// credential is the header field that the SDK sends key in.
	credential(key string) (name, value string)
}

// newModel returns the model that speaks a dialect through the sidecar; at is told
// once when its answer begins. A plain one asks for whole answers, which begin when
// they end.
func newModel(dialect, sidecar, key, name string, plain bool, at func(string)) (model, bool) {
	switch dialect {
	case "chat":
		return newChat(sidecar, key, name, plain, at), true
	case "responses":
		return newResponses(sidecar, key, name, plain, at), true
	case "messages":
		return newMessages(sidecar, key, name, plain, at), true
	}
	return nil, false
}

// errCut: the stream closed before its turn had ended.
var errCut = errors.New("the stream was cut")

// headerRun names the run of an inference.
const headerRun = "X-Run-Id"
