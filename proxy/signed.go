package proxy

import (
	"strings"

	"github.com/unbroken-llm/unbroken/upstream"
)

// unprotectedSigned: the request is signed (AWS Signature Version 4).
const unprotectedSigned = "aws_signature"

// signed reports whether a request carries a signature of AWS over its method, host,
// path, query, headers and body, and no credential of the upstream's own takes its
// place. Nobody but its signer can ask for the rest of a turn then, so that it is
// relayed, unprotected, with all that may be signed as it came: the host, too.
//
// An SDK signs for the host that it dials. AWS accepts that of a request through
// Unbroken only where the caller dials the name of AWS itself and reaches Unbroken
// instead, at the root (by its resolver, and a certificate); else it answers 403,
// which is then the caller's. A Bedrock API key (Bearer) has no such bounds.
func (r *request) signed() bool {
	if r.to.ownCredential() {
		return false
	}
	if strings.HasPrefix(r.header.Get("Authorization"), "AWS4-") { // -HMAC-SHA256, and -ECDSA-P256-SHA256 of many regions
		return true
	}
	_, query, _ := strings.Cut(r.target, "?")
	for pair := range strings.SplitSeq(query, "&") {
		if name, _, _ := strings.Cut(pair, "="); strings.EqualFold(name, "X-Amz-Signature") {
			return true
		}
	}
	return false
}

// destination is where a request that is relayed untouched goes.
func (r *request) destination() *upstream.Target {
	host := r.header.Get("Host")
	if host == "" || !r.signed() {
		return &r.to.target
	}
	t := r.to.target
	t.HostOverride = host
	return &t
}
