// Package storetest is the battery that every store of runs passes, and the wrapper
// that makes one fail before and after its effect.
//
// It is for tests only. It assumes nothing about a store but the contract of
// [ledger.Store]: no clock, no sleep, no order between goroutines.
package storetest
