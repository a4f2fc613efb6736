//go:build race

package proxy

// raced: the race detector is on, under which bounds on allocation do not hold.
const raced = true
