package relay

import "github.com/unbroken-llm/unbroken/interrupt"

// Input is one thing that happened. Inputs of an attempt that is no longer the
// current one are ignored, so that a driver may deliver late.
type Input interface{ input() }

// Opened: an attempt got its response head.
type Opened struct {
	Attempt int
	Status  int
	// Header reads a response header field; it must stay readable until the
	// stream ends or the attempt is canceled.
	Header Header
}

// Header reads the first value of a header field, case-insensitively, or "".
type Header interface{ Get(name string) string }

// Chunk: body bytes of an attempt, transfer coding removed. They stay as they are until
// the next Step: what of them the client gets may be told by where it lies
// (Effects.Client).
type Chunk struct {
	Attempt int
	Bytes   []byte
}

// Ended: an attempt's body (or its opening) ended, politely or not.
type Ended struct {
	Attempt int
	End     interrupt.Ended
}

// Queued: an attempt waits its turn, since too many recoveries are under way at its
// target. Began, Ended or the stream's own giving up (Effects.Cancel) ends the wait.
type Queued struct{ Attempt int }

// Began: a queued attempt is being made now. Probe: it is made on behalf of all
// streams, to find out whether a target is well again.
type Began struct {
	Attempt int
	Probe   bool
}

// Tick: time passed; due when [Stream.Deadline] is reached, harmless otherwise.
type Tick struct{}

// Gone: the client left.
type Gone struct{}

// Stop: the process must end the stream now (drain deadline), or another owner
// has taken the turn over.
type Stop struct{ Reason string }

func (Opened) input() {}
func (Chunk) input()  {}
func (Ended) input()  {}
func (Queued) input() {}
func (Began) input()  {}
func (Tick) input()   {}
func (Gone) input()   {}
func (Stop) input()   {}
