package upstream

import (
	"strings"

	"golang.org/x/net/http/httpguts"
)

// Field is one header line. Name keeps its spelling; comparisons ignore case.
type Field struct{ Name, Value string }

// Header is an ordered list of fields. A name may repeat; the order of repeated values is significant (RFC 9110, section 5.3).
type Header []Field

// Get returns the first value of name, "" when there is none.
func (h Header) Get(name string) string {
	for i := range h {
		if strings.EqualFold(h[i].Name, name) {
			return h[i].Value
		}
	}
	return ""
}

// Has reports whether name occurs.
func (h Header) Has(name string) bool {
	for i := range h {
		if strings.EqualFold(h[i].Name, name) {
			return true
		}
	}
	return false
}

// Values returns all values of name, in order.
func (h Header) Values(name string) []string {
	var v []string
	for i := range h {
		if strings.EqualFold(h[i].Name, name) {
			v = append(v, h[i].Value)
		}
	}
	return v
}

// without returns h less the fields that drop names. It reuses h's storage and must only see headers of our own making.
func (h Header) without(drop func(name string) bool) Header {
	kept := h[:0]
	for _, f := range h {
		if !drop(f.Name) {
			kept = append(kept, f)
		}
	}
	return kept
}

// token reports whether the comma-separated field name lists token.
func (h Header) token(name, token string) bool {
	for i := range h {
		if strings.EqualFold(h[i].Name, name) && httpguts.HeaderValuesContainsToken([]string{h[i].Value}, token) {
			return true
		}
	}
	return false
}

// hopByHop reports fields that speak about one connection (RFC 9110, section 7.6.1), never about the message. They are dropped both
// ways, with the fields that Connection names.
func hopByHop(name string) bool {
	switch len(name) {
	case 2:
		return strings.EqualFold(name, "TE")
	case 7:
		return strings.EqualFold(name, "Trailer") || strings.EqualFold(name, "Upgrade")
	case 10:
		return strings.EqualFold(name, "Connection") || strings.EqualFold(name, "Keep-Alive")
	case 14:
		return strings.EqualFold(name, "HTTP2-Settings")
	case 16:
		return strings.EqualFold(name, "Proxy-Connection")
	case 17:
		return strings.EqualFold(name, "Transfer-Encoding")
	case 18:
		return strings.EqualFold(name, "Proxy-Authenticate")
	case 19:
		return strings.EqualFold(name, "Proxy-Authorization")
	case 25:
		return strings.EqualFold(name, "Proxy-Authentication-Info")
	}
	return false
}

// named reports whether a Connection field names the field, which makes it hop-by-hop.
func (h Header) named(name string) bool {
	for i := range h {
		if len(h[i].Name) == 10 && strings.EqualFold(h[i].Name, "Connection") &&
			httpguts.HeaderValuesContainsToken([]string{h[i].Value}, name) {
			return true
		}
	}
	return false
}
