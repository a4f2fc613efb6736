package faultinject

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
)

// signingKey makes our signatures ours. It protects nothing: it only has to be
// impossible to hit by accident.
var signingKey = []byte("faultinject thinking signature")

// Sign returns the signature this provider issues for a thinking text. Being a
// keyed hash of the text, it can be verified without any memory, and an edited
// thinking block is refused like a forged one.
func Sign(thinking string) string { return mac("thinking", thinking) }

// Redact returns opaque data for a redacted thinking block that this provider
// will accept again.
func Redact(secret string) string { return "red." + secret + "." + mac("redacted", secret) }

func mac(kind, text string) string {
	h := hmac.New(sha256.New, signingKey)
	h.Write([]byte(kind))
	h.Write([]byte{0})
	h.Write([]byte(text))
	return "Erc" + base64.StdEncoding.EncodeToString(h.Sum(nil))
}
