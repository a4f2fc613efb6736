package e2e

import "encoding/json"

// job is one call of one client.
type job struct {
	ID        int               `json:"id"`
	Client    string            `json:"client"`
	Base      string            `json:"base"` // without /v1
	Headers   map[string]string `json:"headers"`
	Model     string            `json:"model"`
	Prompt    string            `json:"prompt"`
	MaxTokens int               `json:"maxTokens"`
	Tools     []toolSpec        `json:"tools,omitempty"`
	Schema    json.RawMessage   `json:"schema,omitempty"`
	Thinking  *thinking         `json:"thinking,omitempty"`
	Choices   int               `json:"choices,omitempty"` // of Chat and completions; 0 is 1
}

type toolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

type thinking struct {
	Type   string `json:"type"`
	Budget int    `json:"budget_tokens,omitempty"`
}

// reply is what the client made of it. The message of a failure is what the
// client had shown by then.
type reply struct {
	ID      int      `json:"id"`
	Message message  `json:"message"`
	Failure *failure `json:"failure"`
}

// message is a client's final message, free of dialect and language.
type message struct {
	Text      string `json:"text"`
	Reasoning string `json:"reasoning"`
	Calls     []call `json:"calls"`
	Finish    string `json:"finish"`          // every reason it saw, joined by +
	Starts    int    `json:"starts"`          // message starts, or different ids
	Usages    int    `json:"usages"`          // records of usage
	Value     any    `json:"value,omitempty"` // of an ordinary call: what the SDK returned
}

// call is a tool call. Args are as the client hands them over, in JSON.
type call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"`
}

// failure is what a caller can tell of an error.
type failure struct {
	Type   string `json:"type"`   // its class
	Status int    `json:"status"` // 0 if it has none
	Kind   string `json:"kind"`   // the provider's error type
	Text   string `json:"text"`
}
