// Package mains is what a server hangs on in a measurement: a port in front of it that can be
// cut off, restored, or made late, under connections that are open.
//
// Its law: bytes pass as they are and in their order. What it changes is when they come, and
// whether; a connection that it ends, it resets.
package mains
