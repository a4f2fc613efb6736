// Package storetest is the battery that every checkpoint store passes, and the
// wrapper that makes a store misbehave.
//
// It is for tests only. It assumes nothing about a store but the contract of
// [checkpoint.Store]: no clock, no sleep, no order between goroutines.
package storetest
