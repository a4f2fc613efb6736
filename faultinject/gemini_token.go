package faultinject

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// A continuation token names a turn and how much of its text was generated. It
// carries its own proof, so that no memory has to be kept: one that was issued
// for another request is as unknown as one that was made up (WIRE 2.1).

// newToken is the token behind the first n bytes of a turn's text.
func newToken(key string, n int) string {
	text := strconv.Itoa(n)
	return base64.StdEncoding.EncodeToString([]byte("ct." + text + "." + mac("checkpoint "+key, text)))
}

// readToken returns how much of the text a token stands behind.
func readToken(token string) (n int, err error) {
	raw, err := base64.StdEncoding.DecodeString(token)
	if err == nil {
		text, _, _ := strings.Cut(strings.TrimPrefix(string(raw), "ct."), ".")
		n, err = strconv.Atoi(text)
	}
	if err != nil || n < 1 {
		return 0, fmt.Errorf("the continuation token cannot be read")
	}
	return n, nil
}

// checkToken refuses a token that was not issued for this turn. The provider's
// own words are not recorded anywhere; these are ours.
func checkToken(token, key string) *Refusal {
	if token == "" {
		return nil
	}
	if n, err := readToken(token); err != nil || newToken(key, n) != token {
		return badArgument("The continuation token is invalid or has expired.")
	}
	return nil
}

// signPart returns the thought signature this provider issues for a part: text
// or a function call. It is bytes, so it is whole base64.
func signPart(kind, text string) string {
	return base64.StdEncoding.EncodeToString([]byte(mac("part "+kind, text)))
}
