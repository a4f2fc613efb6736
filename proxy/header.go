package proxy

import (
	"strings"

	"github.com/unbroken-llm/unbroken/upstream"
)

// The headers of Unbroken itself. Those of requests are not forwarded.
const (
	headerRun          = "X-Run-Id"
	headerRecovery     = "X-Stream-Recovery"     // transparent, events
	headerOnDisconnect = "X-Run-On-Disconnect"   // finish; see DESIGN §8
	headerProtection   = "X-Unbroken-Protection" // of a response that is not protected, and why
	headerStatus       = "X-Unbroken-Status"     // of a response whose status is another, and why: see final.go
)

func ownHeader(name string) bool {
	return strings.EqualFold(name, headerRun) || strings.EqualFold(name, headerRecovery) || strings.EqualFold(name, headerOnDisconnect)
}

// credentialHeaders are the fields that callers identify themselves by, in the
// order in which they are believed.
var credentialHeaders = []string{"Authorization", "x-api-key", "api-key", "x-goog-api-key", "x-amz-security-token"}

func credentialHeader(name string) bool {
	for _, c := range credentialHeaders {
		if strings.EqualFold(c, name) {
			return true
		}
	}
	return false
}

// credential is what the caller identifies itself by, "" if by nothing. One key is one
// caller in whatever field: Anthropic's SDKs differ in where they send it.
func credential(h upstream.Header) string {
	for _, name := range credentialHeaders {
		if v := h.Get(name); v != "" {
			if scheme, token, ok := strings.Cut(v, " "); ok && strings.EqualFold(scheme, "Bearer") {
				return token
			}
			return v
		}
	}
	return ""
}

// parseHeader reads the raw header lines of a request that fasthttp has accepted.
// Order, spelling and repetition stay as they came. raw is copied once.
func parseHeader(raw []byte) upstream.Header {
	text := string(raw)
	h := make(upstream.Header, 0, strings.Count(text, "\n")+1)
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSuffix(line, "\r")
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || name[0] == ' ' || name[0] == '\t' {
			continue // the empty line at the end; fasthttp refuses folded lines
		}
		h = append(h, upstream.Field{Name: name, Value: strings.Trim(value, " \t")})
	}
	return h
}

// listed reports whether the comma-separated field name of h lists token.
func listed(h upstream.Header, name, token string) bool {
	for _, v := range h.Values(name) {
		for t := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(t), token) {
				return true
			}
		}
	}
	return false
}

// upward is the header that goes to o: the caller's less what is not for it,
// then what the upstream's configuration adds. drop names further fields to
// leave out. Hop-by-hop fields, Host and lengths are upstream's business.
func (o *origin) upward(h upstream.Header, drop func(name string) bool) upstream.Header {
	up := make(upstream.Header, 0, len(h)+len(o.Header)+2)
	for _, f := range h {
		switch {
		case ownHeader(f.Name), o.Header.Has(f.Name), drop != nil && drop(f.Name):
		case o.Credential.Name != "" && (credentialHeader(f.Name) || strings.EqualFold(f.Name, o.Credential.Name)):
		default:
			up = append(up, f)
		}
	}
	up = append(up, o.Header...)
	if o.Credential.Name != "" {
		up = append(up, o.Credential)
	}
	return up
}

func acceptEncoding(name string) bool { return strings.EqualFold(name, "Accept-Encoding") }

// ofTheBody reports fields that describe the client's body and are wrong for one
// that Unbroken wrote.
func ofTheBody(name string) bool {
	for _, n := range []string{"Content-Encoding", "Content-MD5", "Digest", "Content-Digest", "Repr-Digest"} {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}
