// Package agents runs real agents, unmodified and as their users install them,
// against a provider whose streams break: directly, to see what the agent makes
// of it alone, and through unbroken, where it must notice nothing.
//
//	agent ──────────────────────► unbroken faults ──► strict provider
//	agent ──► unbroken serve ───► unbroken faults ──► strict provider
//
// The agent and both programs are processes of their own. The strict provider
// behind the faults belongs to the test (package faultinject): it decides what
// the model says, refuses what the real one refuses, and counts what arrives.
//
//	require_test.go   what has to be installed
//	process_test.go   unbroken, built from this module
//	provider_test.go  the model, and its bill
//	agent_test.go     one headless run
//	claude_test.go, codex_test.go, opencode_test.go, gemini_test.go
//	                  each agent: its settings, and what is tried on it
//	transcript_test.go, and NAME_transcript_test.go where it is long
//	                  what its user saw
//	breakage_test.go  the faults
//	agents_test.go    the runs, and a table an agent
//	documented_test.go
//	                  the agents as docs/CLIENTS.md sets them up
//
// Nothing is asserted about what an agent does alone: that is its own affair, and
// the table's. Install the agents with the install script beside this file, or do
// both with make agents.
package agents
