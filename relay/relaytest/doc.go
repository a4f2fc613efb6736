// Package relaytest drives relay streams without sockets, goroutines or a real
// clock: a provider is a function, time is a number, and every effect is checked
// against the contract of relay.Effects as it is performed.
package relaytest
