// Package dialect is the contract that each provider protocol fulfils, the facts
// about hosts and models that go with it, and the request fields that all of
// them share.
//
// A dialect is a set of pure functions between wire bytes and the words of
// package turn. It decides nothing: whether a turn is continued, and what of a
// continuation reaches the client, is told to it. Everything a dialect renders is
// whole events, and belongs to the one message that the client already has.
//
// Layer 1: imports sse, turn, internal/jsonwalk and std only.
package dialect
