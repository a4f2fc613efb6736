// Package purity checks the house's import and purity laws, for use by tests only.
//
// Law: what decides is pure and what acts is thin (HOUSE §4). A pure package is a function of its arguments: it reaches
// no network, process, clock, lock, goroutine or global randomness, so the whole relay can be replayed from a seed. The
// checks return what they found as lines of text, so that they can themselves be tested; a test prints them and fails.
package purity
