// Package ledger holds the rules by which the committed facts of an agent's run are
// kept, and the answer to the question that a crash leaves behind: what may safely
// be done now (DESIGN §9).
//
// A [Run] is a list of steps; a step is one inference and the whole batch of tool
// calls that it asked for. Facts come in as [Entry] values, from the wire or from
// the application, and [Apply] alone moves a run: along a legal edge, or not at all.
//
//	run    Running ─────────── a step, a call's progress ──────────▶ Running
//	       Running ── Wait ──▶ Awaiting(ticket) ── Resume(ticket) ─▶ Running
//	       Running | Awaiting ── End, a step without calls ────────▶ Ended
//
//	call   Requested ── Start(1) ──▶ Executing(1) ── Start(n+1), by policy ─▶ Executing(n+1)
//	       Requested | Executing ── Wait ─▶ Awaiting ── Resume ─────────────▶ Executing(n+1)
//	       Requested | Executing | Awaiting ── Result ───────▶ Completed
//	       Requested | Executing | Awaiting ── Lose, End ────▶ Indeterminate
//
// When the last call of a batch is Completed or Indeterminate the batch is
// finalized, in the same write that ends it, and only then are its results to be
// seen: nobody ever reads half a batch. Ended absorbs. Every entry may be repeated
// without harm. A live delta is never a fact.
//
// [Recover] answers from those facts alone. Where they do not suffice the answer is
// "unknown", never "safe".
//
// [Store] keeps runs by compare-and-set of whole records, so that the rules are in
// one place, here, and not once more in each store's language; storetest is the
// battery that all stores pass, memory.go the twin for tests and single processes.
// Nothing here reads a clock.
//
// Layer 1: imports checkpoint for the identity of callers and runs.
package ledger
