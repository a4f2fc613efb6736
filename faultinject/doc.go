// Package faultinject is a strict LLM provider that lies only on request.
//
// Its law: what it says is what the real provider would say. An answer is a
// pure value rendered into the provider's wire events (WIRE 1); a
// request the provider would refuse is refused in its words (WIRE 2); asked
// to continue an answer, it continues like a model does (WIRE 2.2). All
// misbehaviour comes from a script, is addressed by event, kind or byte, is
// drawn from a seed, and is written in the log: the same script, seed and
// requests give the same bytes.
//
// Layers, top to bottom: script (what shall go wrong) -> fault (one file
// each, a pure function from position to action) -> drive (performs actions)
// -> wire (HTTP/1.1 on net/http, HTTP/2 on a bare framer). Only drive and
// wire touch sockets and clocks.
//
// It serves tests in-process and people as `unbroken faults`. It is never
// part of the proxy itself. docs/FAULTS.md is its manual.
package faultinject
