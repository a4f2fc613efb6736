package ledger

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// version is that of the encoding. A reader refuses larger ones.
const version = 1

// envelope is a run at rest. The fields of Run are its contract: renaming one is a
// new version (TestEncodingIsStable).
type envelope struct {
	V   int
	Run json.RawMessage
}

// Encode returns the run at rest: JSON, the same bytes for the same run.
func Encode(r *Run) []byte {
	b, err := json.Marshal(r)
	if err == nil {
		b, err = json.Marshal(envelope{V: version, Run: b})
	}
	if err != nil {
		panic("BUG: ledger: a run that cannot be encoded: " + err.Error())
	}
	return b
}

// Decode reads what Encode wrote. ErrNewer, ErrCorrupt.
func Decode(b []byte) (*Run, error) {
	var e envelope
	if err := json.Unmarshal(b, &e); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	switch {
	case e.V > version:
		return nil, fmt.Errorf("%w: %d, this is %d", ErrNewer, e.V, version)
	case e.V < 1:
		return nil, fmt.Errorf("%w: encoding %d", ErrCorrupt, e.V)
	}
	d := json.NewDecoder(bytes.NewReader(e.Run))
	d.DisallowUnknownFields()
	r := &Run{}
	if err := d.Decode(r); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return r, nil
}

// check holds a decoded run against the invariants that the rules rely on.
func (r *Run) check() error {
	if r.Version == 0 || r.ID == "" || r.Dropped < 0 || r.State > Ended {
		return fmt.Errorf("version %d of run %q, state %d, %d steps dropped", r.Version, r.ID, r.State, r.Dropped)
	}
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.N != r.Dropped+i+1 {
			return fmt.Errorf("step %d stands at %d", s.N, r.Dropped+i+1)
		}
		if !s.Finalized && (i != len(r.Steps)-1 || r.State == Ended) {
			return fmt.Errorf("step %d is open", s.N)
		}
		for j := range s.Calls {
			if err := s.Calls[j].check(s.Finalized); err != nil {
				return fmt.Errorf("step %d: call %q: %w", s.N, s.Calls[j].ID, err)
			}
		}
	}
	return nil
}

func (c *Call) check(finalized bool) error {
	switch {
	case c.State > Indeterminate:
		return fmt.Errorf("state %d", c.State)
	case finalized != c.State.Terminal() && finalized:
		return fmt.Errorf("%s in a finalized batch", c.State)
	case c.State == Executing && len(c.Attempts) == 0:
		return fmt.Errorf("executing without an attempt")
	case (c.State == Done) != (c.Result != nil):
		return fmt.Errorf("%s, and a result is there: %v", c.State, c.Result != nil)
	}
	return nil
}
