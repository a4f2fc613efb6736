// Package relay is one client stream as a state machine, over as many attempts
// at a provider as it takes.
//
// [Stream.Step] takes one [Input] and the time and returns [Effects]: what to
// persist, what to send, which attempt to open or drop, how to end. It never
// blocks, locks, reads a clock or starts a goroutine; whoever drives it performs
// the effects in the order that Effects documents.
//
//	bytes ─ sse.Scanner ─ dialect.Decoder ─ turn.Snapshot ──┬─ raw event ──────────────┐
//	                                                        │                          │
//	        (first attempt: pass)                           └─ hold a call until whole ─┴─ client
//	        (later attempts: join)  seam ─ map blocks ─ dialect.Rewrite ────────────────┘
//
//	opening ──2xx──▶ reading ──semantic end──▶ closing ──▶ done
//	   ▲                │ interrupted: planner.Decide
//	   └── waiting ◀────┘
//
// Invariants: the client gets whole events of one message, in order, from one
// writer; nothing after a terminal; no byte of an unfinished tool call in mode
// transparent; the end is normal only if the provider's turn really ended or a
// plan really completed it.
//
// Layer 3: types of sse, turn, dialect, interrupt, planner, splice.
package relay
