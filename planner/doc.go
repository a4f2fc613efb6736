// Package planner decides what is done about an interruption.
//
// There is one pure, total function: [Decide] maps [Facts] to a [Plan] whose
// Reason is never empty and is what the metric, the trace and the status page
// print. It waits for nothing, reads no clock, draws no randomness (jitter is a
// fact) and knows no provider's wire.
//
// Layer 2: imports turn, interrupt and std only; never dialect.
package planner
