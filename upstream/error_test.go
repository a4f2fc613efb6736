package upstream

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"testing"
)

// Go's own errors begin with what an Error says already.
func TestErrorsSayNothingTwice(t *testing.T) {
	for _, c := range []struct {
		err  Error
		want string
	}{
		{
			Error{Target: "openai", Op: OpTLS, Safety: NotSent, Kind: TLS, Err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}},
			"upstream openai: tls: failed to verify certificate: x509: certificate signed by unknown authority [not sent]",
		},
		{Error{Op: OpTLS, Safety: NotSent, Kind: Timeout, Err: errors.New("i/o timeout")}, "upstream: tls: timeout: i/o timeout [not sent]"},
		{Error{Op: OpDial, Safety: NotSent, Kind: Refused, Err: errors.New("dial tcp: refused")}, "upstream: dial: refused: dial tcp: refused [not sent]"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
