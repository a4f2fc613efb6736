package faultinject

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strings"
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

// sealMark begins everything sealed, as it does at OpenAI.
const sealMark = "gAAAAAB"

// Seal returns the encrypted_content of a reasoning item. It can be verified
// without any memory, so an altered one is refused.
func Seal(reasoning string) string {
	return sealMark + base64.URLEncoding.EncodeToString([]byte(reasoning)) + "." + mac("sealed", reasoning)
}

// unseal reports whether sealed is what Seal returned.
func unseal(sealed string) bool {
	body, _, ok := strings.Cut(strings.TrimPrefix(sealed, sealMark), ".")
	text, err := base64.URLEncoding.DecodeString(body)
	return ok && err == nil && Seal(string(text)) == sealed
}

func mac(kind, text string) string {
	h := hmac.New(sha256.New, signingKey)
	h.Write([]byte(kind))
	h.Write([]byte{0})
	h.Write([]byte(text))
	return "Erc" + base64.StdEncoding.EncodeToString(h.Sum(nil))
}
