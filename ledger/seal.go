package ledger

import "fmt"

// Sealer encrypts what a store keeps (DESIGN §13). What was sealed about one thing
// does not open about another.
type Sealer interface {
	Seal(p []byte, about string) []byte
	Open(sealed []byte, about string) ([]byte, error)
}

// Seal returns the run as a store keeps it under key: encoded, and encrypted unless s
// is nil. The lists by which a run is found are hashes, and not part of it.
func Seal(s Sealer, key RunKey, r *Run) []byte {
	if s == nil {
		return Encode(r)
	}
	return s.Seal(Encode(r), about(key))
}

// Unseal reads what Seal wrote. ErrNewer, ErrCorrupt: also what is not sealed, or
// under a key that s does not have.
func Unseal(s Sealer, key RunKey, b []byte) (*Run, error) {
	if s == nil {
		return Decode(b)
	}
	p, err := s.Open(b, about(key))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return Decode(p)
}

func about(key RunKey) string { return "run " + key.String() }
