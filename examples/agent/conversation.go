package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// conversation is what the agent itself must keep: the ledger has no words.
type conversation struct {
	Task  string
	Turns []turn
}

// turn is one step of the run: what the model said, and what its calls came to.
type turn struct {
	// Message is the turn as the dialect's later requests carry it.
	Message json.RawMessage
	Text    string
	Calls   []call
	// Results are in the order of Calls, nil until the batch is settled.
	Results []string
}

type call struct{ ID, Name, Args string }

// store keeps the conversation of one run in a directory.
type store struct{ dir string }

func (s store) load() (c conversation, err error) {
	b, err := os.ReadFile(s.path())
	if errors.Is(err, os.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil {
		return c, fmt.Errorf("read the conversation: %w", err)
	}
	return c, nil
}

// save replaces the file as a whole: a crash leaves the old one or the new one.
func (s store) save(c conversation) error {
	b, err := json.MarshalIndent(c, "", "  ")
	if err == nil {
		err = os.WriteFile(s.path()+".tmp", b, 0o600)
	}
	if err == nil {
		err = os.Rename(s.path()+".tmp", s.path())
	}
	if err != nil {
		return fmt.Errorf("save the conversation: %w", err)
	}
	return nil
}

func (s store) path() string { return filepath.Join(s.dir, "conversation.json") }
